// tests/capi/launch_test.cpp - library kernels and own PTX through C
#include <algorithm>
#include <cmath>
#include <numeric>

#include "capi/capi.hpp"
#include "support/harness.hpp"

using namespace ptxgen::test;

namespace {

std::vector<float> numbers(std::size_t count, float first, float step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = first + step * static_cast<float>(i % 17);
  return values;
}

ptxgen_argument argument(const void* value, std::uint32_t bytes, ptxgen_type type) {
  return {value, bytes, type};
}

/// A device with a stream.
struct LaunchSetup {
  OwnedDevice device;
  OwnedStream stream;

  LaunchSetup() {
    open_emulator(device);
    good(ptxgen_stream_create(device, PTXGEN_STREAM_NON_BLOCKING, 0, &stream), device);
  }
  void finish() { good(ptxgen_stream_synchronize(stream), stream); }
};

}  // namespace

TEST_CASE("the library's kernels can be listed and built by name", "[capi]") {
  const std::size_t kernels = ptxgen_kernel_count();
  REQUIRE(kernels >= 5);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kernels; ++i) {
    ptxgen_kernel_info info{};
    info.struct_bytes = sizeof info;
    good(ptxgen_kernel_get_info(i, &info));
    names.emplace_back(info.name);
    INFO(info.name);
    CHECK(std::strlen(info.doc) > 5);
    CHECK(std::strlen(info.access_pattern) > 5);
    std::vector<ptxgen_parameter> parameters;
    for (std::size_t p = 0; p < info.parameter_count; ++p) {
      ptxgen_parameter_info parameter{};
      parameter.struct_bytes = sizeof parameter;
      good(ptxgen_kernel_get_parameter(i, p, &parameter));
      CHECK(std::strlen(parameter.doc) > 3);
      const std::string type = parameter.type;
      CHECK((type == "u32" || type == "u64" || type == "bool" || type == "word"));
      CHECK((parameter.min <= parameter.default_value && parameter.default_value <= parameter.max));
      // A row of 256 is whole blocks of every format, has no 64 splits and, repacked, no lanes with
      // rows of their own; matrices of a batch are one after another.
      const std::string_view name = parameter.name;
      if (name.substr(0, 6) == "stride" || name == "splits" || name == "lane_rows") continue;
      if (name == "page") continue;  // not with a shared cache
      const std::string_view kernel = info.name;
      const bool products = kernel.starts_with("gemm") || kernel.starts_with("flash_");
      // Types of operands that go together.
      if (products && (name == "type" || name == "b" || name == "cache")) continue;
      // Persistent blocks need stages that divide the steps.
      if (products && (name == "blocks" || name == "stream_k")) continue;
      parameters.push_back({parameter.name, std::min<std::uint64_t>(256, parameter.max)});
    }
    OwnedProgram program;
    const bool specific = std::string_view(info.name).ends_with("_wgmma");
    const std::string target = specific ? "sm_90a" : "sm_80";
    good(ptxgen_program_build(nullptr, target.c_str(), info.name, parameters.data(),
                              parameters.size(), &program));
    std::size_t bytes = 0;
    const std::string ptx = ptxgen_program_ptx(program, &bytes);
    CHECK(ptx.size() == bytes);
    CHECK(ptx.find(".target " + target) != std::string::npos);
    CHECK(ptxgen_program_entry_count(program) == 1);
    // A member of a family has a name of its own: gemm_mma.
    CHECK(std::string_view(ptxgen_program_entry(program, 0)).substr(0, names.back().size()) ==
          names.back());
    CHECK(ptxgen_program_entry(program, 1) == nullptr);
    CHECK(std::string(ptxgen_program_log(program)).empty());
    ptxgen_geometry shape{};
    shape.struct_bytes = sizeof shape;
    good(ptxgen_program_geometry(program, &shape), program);
    CHECK((shape.grid[0] >= 1 && shape.block[0] * shape.block[1] >= 32));
  }
  CHECK(std::is_sorted(names.begin(), names.end()));
  ptxgen_kernel_info info{};
  info.struct_bytes = sizeof info;
  CHECK(ptxgen_kernel_get_info(kernels, &info) == PTXGEN_ERROR_USAGE);
  ptxgen_parameter_info parameter{};
  parameter.struct_bytes = sizeof parameter;
  CHECK(ptxgen_kernel_get_parameter(0, 99, &parameter) == PTXGEN_ERROR_USAGE);
  CHECK(ptxgen_kernel_get_parameter(kernels, 0, &parameter) == PTXGEN_ERROR_USAGE);
}

TEST_CASE("building says what is wrong with kernel, parameter and target", "[capi]") {
  OwnedProgram program;
  CHECK(ptxgen_program_build(nullptr, "sm_80", "gems", nullptr, 0, &program) == PTXGEN_ERROR_BUILD);
  CHECK(error_message(nullptr).find("there is no kernel 'gems'; there are: ") == 0);
  ptxgen_parameter parameter{"m", 3};
  CHECK(ptxgen_program_build(nullptr, "sm_80", "vadd", &parameter, 1, &program) ==
        PTXGEN_ERROR_BUILD);
  CHECK(error_message(nullptr) == "vadd has no parameter 'm'; it has: n, type");
  parameter = {"n", 0};
  CHECK(ptxgen_program_build(nullptr, "sm_80", "vadd", &parameter, 1, &program) ==
        PTXGEN_ERROR_BUILD);
  CHECK(error_code(nullptr) == "bad-parameter");
  CHECK(ptxgen_program_build(nullptr, "sm_2000", "vadd", nullptr, 0, &program) != PTXGEN_OK);
  CHECK(error_code(nullptr) == "unknown-target");
  CHECK(ptxgen_program_build(nullptr, nullptr, "vadd", nullptr, 0, &program) == PTXGEN_ERROR_USAGE);
  CHECK(ptxgen_program_build(nullptr, "sm_80", nullptr, nullptr, 0, &program) ==
        PTXGEN_ERROR_USAGE);
  CHECK(ptxgen_program_build(nullptr, "sm_80", "vadd", nullptr, 1, &program) == PTXGEN_ERROR_USAGE);
  OwnedProgram own;
  parse_saxpy(own);
  ptxgen_geometry shape{};
  shape.struct_bytes = sizeof shape;
  CHECK(ptxgen_program_geometry(own, &shape) == PTXGEN_ERROR_USAGE);
  CHECK(error_code(own) == "no-geometry");
}

TEST_CASE("PTX that is wrong is refused with line and rule", "[capi]") {
  OwnedProgram program;
  const std::string syntax = ".version 7.0\n.target sm_75\n.address_size 64\n.entry k( {\n}\n";
  CHECK(ptxgen_program_parse(syntax.data(), syntax.size(), "mine.ptx", &program) ==
        PTXGEN_ERROR_VERIFY);
  OwnedError error;
  error.handle = ptxgen_last_error(nullptr);
  CHECK(std::string(ptxgen_error_code(error)) == "syntax");
  CHECK(std::string(ptxgen_error_file(error)) == "mine.ptx");
  CHECK(ptxgen_error_line(error) == 4);
  CHECK(std::string(ptxgen_error_text(error)).find("mine.ptx:4:") == 0);
  const std::string type =
      ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n.reg .f32 %f<2>;\n"
      "add.u32 %f0, %f1, %f1;\nret;\n}\n";
  CHECK(ptxgen_program_parse(type.data(), type.size(), nullptr, &program) == PTXGEN_ERROR_VERIFY);
  CHECK(error_code(nullptr) == "type-mismatch");
}

TEST_CASE("gates run before every load, and can be turned off", "[capi]") {
  const std::string text =
      ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k() .reqntid 2048 { ret; }\n";
  OwnedProgram program;
  REQUIRE(ptxgen_program_parse(text.data(), text.size(), "mine.ptx", &program) == PTXGEN_OK);
  OwnedModule module;
  OwnedFunction function;
  {
    LaunchSetup setup;
    CHECK(ptxgen_module_load(setup.device, program, &module) == PTXGEN_ERROR_VERIFY);
    CHECK(error_code(setup.device) == "tile-limits");
    CHECK(ptxgen_function_load(setup.device, program, "k", &function) == PTXGEN_ERROR_VERIFY);
    CHECK(error_code(setup.device) == "tile-limits");
  }
  const ptxgen_setting memory{"PTXGEN_CACHE", "memory"};
  ptxgen_device_options options{};
  options.struct_bytes = sizeof options;
  options.ignore_environment = 1;
  options.settings = &memory;
  options.setting_count = 1;
  options.no_gates = 1;
  OwnedDevice device;
  REQUIRE(ptxgen_device_open("emulator", &options, &device) == PTXGEN_OK);
  CHECK(ptxgen_module_load(device, program, &module) == PTXGEN_OK);
  CHECK(ptxgen_function_load(device, program, "k", &function) == PTXGEN_OK);
}

TEST_CASE("gemv_any takes layout, types and what is added", "[capi]") {
  LaunchSetup setup;
  ptxgen_device* const device = setup.device;
  constexpr std::uint32_t k = 40;
  constexpr std::uint32_t n = 33;
  const std::vector<float> w = numbers(k * n, -1, 0.25f);
  const std::vector<float> x = numbers(k, 0.5f, -0.125f);
  const std::vector<float> bias = numbers(n, 3, 0.5f);
  OwnedBuffer w_buffer, x_buffer, y_buffer, bias_buffer;
  upload(device, w, w_buffer);
  upload(device, x, x_buffer);
  upload(device, std::vector<float>(n, -2), y_buffer);
  upload(device, bias, bias_buffer);
  ptxgen_gemv_problem problem{};
  problem.struct_bytes = sizeof problem;
  problem.k = k;
  problem.n = n;
  problem.layout = PTXGEN_GEMV_R;
  problem.bias = 1;
  problem.scaled = 1;
  ptxgen_gemv_operands operands{};
  operands.struct_bytes = sizeof operands;
  operands.y = ptxgen_buffer_span(y_buffer);
  operands.a = ptxgen_buffer_span(w_buffer);
  operands.x = ptxgen_buffer_span(x_buffer);
  operands.bias = ptxgen_buffer_span(bias_buffer);
  operands.alpha = 2;
  operands.beta = 4;
  ptxgen_launch_record record{};
  record.struct_bytes = sizeof record;
  good(ptxgen_gemv_any(device, &problem, &operands, setup.stream, &record), device);
  setup.finish();
  std::vector<float> expected(n);
  for (std::uint32_t j = 0; j < n; ++j) {
    for (std::uint32_t i = 0; i < k; ++i) expected[j] += w[j * k + i] * x[i];
    expected[j] = 2 * expected[j] + 4 * -2 + bias[j];
  }
  CHECK(download(y_buffer) == expected);
  CHECK(std::string(record.kernel) == "gemv");

  // The same, frozen: alpha and beta are not read where the problem is not scaled.
  problem.scaled = 0;
  OwnedPlan plan;
  good(ptxgen_plan_gemv_any(device, &problem, &operands, setup.stream, &plan), device);
  good(ptxgen_plan_launch(plan, nullptr), device);
  setup.finish();
  for (std::uint32_t j = 0; j < n; ++j) {
    float sum = 0;
    for (std::uint32_t i = 0; i < k; ++i) sum += w[j * k + i] * x[i];
    expected[j] = sum + bias[j];
  }
  CHECK(download(y_buffer) == expected);

  problem.layout = 2;
  CHECK(ptxgen_gemv_any(device, &problem, &operands, setup.stream, nullptr) == PTXGEN_ERROR_USAGE);
  CHECK(error_text(device).find("problem.layout is 2; it may be 0 to 1") != std::string::npos);
  CHECK(ptxgen_gemv_any(device, nullptr, &operands, setup.stream, nullptr) == PTXGEN_ERROR_USAGE);
  CHECK(ptxgen_gemv_any(device, &problem, nullptr, setup.stream, nullptr) == PTXGEN_ERROR_USAGE);
}

TEST_CASE("gemv, matmul, vadd, copy and fma_rpt compute what they say", "[capi]") {
  LaunchSetup setup;
  ptxgen_device* const device = setup.device;
  constexpr std::uint32_t k = 45;
  constexpr std::uint32_t n = 67;
  const std::vector<float> a = numbers(k * n, -1, 0.25f);
  const std::vector<float> x = numbers(k, 0.5f, -0.125f);
  OwnedBuffer a_buffer;
  OwnedBuffer x_buffer;
  OwnedBuffer y_buffer;
  upload(device, a, a_buffer);
  upload(device, x, x_buffer);
  upload(device, std::vector<float>(n, -77), y_buffer);
  ptxgen_launch_record record{};
  record.struct_bytes = sizeof record;
  good(ptxgen_gemv(device, ptxgen_buffer_span(y_buffer), ptxgen_buffer_span(a_buffer),
                   ptxgen_buffer_span(x_buffer), k, n, setup.stream, &record),
       device);
  setup.finish();
  std::vector<float> expected(n);
  for (std::uint32_t j = 0; j < n; ++j) {
    for (std::uint32_t i = 0; i < k; ++i) expected[j] += a[i * n + j] * x[i];
  }
  // All products and sums are exact in these numbers.
  CHECK(download(y_buffer) == expected);
  CHECK(std::string(record.kernel).find("gemv") == 0);
  CHECK(std::string(record.implementation) != "");
  CHECK(std::string(record.reason).find("auto: ") == 0);
  CHECK(record.launches == 1);
  CHECK(record.cached == 0);
  CHECK(record.struct_bytes == sizeof record);
  CHECK((record.geometry.grid[0] >= 1 && record.geometry.block[0] >= 32));
  good(ptxgen_gemv(device, ptxgen_buffer_span(y_buffer), ptxgen_buffer_span(a_buffer),
                   ptxgen_buffer_span(x_buffer), k, n, setup.stream, &record),
       device);
  CHECK(record.cached == 1);
  ptxgen_stage_time stages[16];
  std::size_t count = 0;
  good(ptxgen_stages(device, record.kernel, stages, 16, &count), device);
  REQUIRE((count >= 2 && count <= 16));
  CHECK(std::string(stages[0].stage) == "build");
  CHECK(stages[0].microseconds > 0);
  good(ptxgen_stages(device, "never launched", nullptr, 0, &count), device);
  CHECK(count == 0);

  constexpr std::uint32_t m = 3;
  const std::vector<float> rows = numbers(m * k, 2, -0.5f);
  OwnedBuffer rows_buffer;
  OwnedBuffer c_buffer;
  upload(device, rows, rows_buffer);
  upload(device, std::vector<float>(m * n, -77), c_buffer);
  good(ptxgen_matmul(device, ptxgen_buffer_span(c_buffer), ptxgen_buffer_span(rows_buffer),
                     ptxgen_buffer_span(a_buffer), {m, k, n}, setup.stream, &record),
       device);
  setup.finish();
  CHECK(record.launches == 1);
  std::vector<float> product(m * n);
  for (std::uint32_t r = 0; r < m; ++r) {
    for (std::uint32_t j = 0; j < n; ++j) {
      for (std::uint32_t i = 0; i < k; ++i) product[r * n + j] += rows[r * k + i] * a[i * n + j];
    }
  }
  CHECK(download(c_buffer) == product);

  good(launch_vadd(device, ptxgen_buffer_span(c_buffer), ptxgen_buffer_span(c_buffer),
                   ptxgen_buffer_span(c_buffer), m * n, setup.stream, nullptr),
       device);
  good(launch_copy(device, ptxgen_buffer_span(y_buffer), ptxgen_buffer_span(c_buffer), n,
                   setup.stream, nullptr),
       device);
  good(launch_fma_rpt(device, ptxgen_buffer_span(y_buffer), ptxgen_buffer_span(y_buffer), n, 2,
                      0.5f, 1.0f, setup.stream, nullptr),
       device);
  setup.finish();
  std::vector<float> last(n);
  for (std::uint32_t j = 0; j < n; ++j) {
    last[j] = std::fma(std::fma(2 * product[j], 0.5f, 1.0f), 0.5f, 1.0f);
  }
  CHECK(download(y_buffer) == last);
}

TEST_CASE("arguments of the library's kernels are checked before the launch", "[capi]") {
  LaunchSetup setup;
  ptxgen_device* const device = setup.device;
  OwnedBuffer small;
  OwnedBuffer other;
  upload(device, std::vector<float>(16, 1), small);
  upload(device, std::vector<float>(16, 1), other);
  const ptxgen_span span = ptxgen_buffer_span(small);
  const ptxgen_span apart = ptxgen_buffer_span(other);
  const auto vadd = [&](ptxgen_span c, ptxgen_span a, std::uint32_t n) {
    const ptxgen_status status = launch_vadd(device, c, a, a, n, setup.stream, nullptr);
    return std::string(ptxgen_status_name(status)) + " " + error_code(device);
  };
  CHECK(vadd(apart, span, 17) == "launch buffer-size");
  CHECK(vadd({0, 64}, span, 16) == "launch null-pointer");
  CHECK(vadd({apart.address + 2, 62}, span, 8) == "launch misaligned");
  CHECK(vadd({span.address + 4, 60}, span, 15) == "launch aliasing");
  CHECK(launch_vadd(device, span, span, span, 16, nullptr, nullptr) == PTXGEN_ERROR_USAGE);
  ptxgen_launch_record record{};
  CHECK(launch_vadd(device, span, span, span, 16, setup.stream, &record) == PTXGEN_ERROR_USAGE);
  CHECK(error_code(device) == "struct-bytes");
  CHECK(ptxgen_gemv(device, span, span, span, 4, 4, setup.stream, nullptr) == PTXGEN_ERROR_LAUNCH);
  CHECK(error_code(device) == "aliasing");
  // Nothing of all that was launched.
  setup.finish();
  CHECK(download(small) == std::vector<float>(16, 1));
}

TEST_CASE("any kernel of the catalog is described and launched by name", "[capi]") {
  LaunchSetup setup;
  ptxgen_device* const device = setup.device;
  std::size_t rmsnorm = 0;
  ptxgen_kernel_info kernel{};
  kernel.struct_bytes = sizeof kernel;
  for (; rmsnorm < ptxgen_kernel_count(); ++rmsnorm) {
    good(ptxgen_kernel_get_info(rmsnorm, &kernel));
    if (std::string(kernel.name) == "rmsnorm") break;
  }
  REQUIRE(rmsnorm < ptxgen_kernel_count());
  std::string operands;
  for (std::size_t i = 0; i < kernel.operand_count; ++i) {
    ptxgen_operand_info info{};
    info.struct_bytes = sizeof info;
    good(ptxgen_kernel_get_operand(rmsnorm, i, &info));
    operands += std::string(info.name) + ":" + info.role + " ";
  }
  CHECK(operands == "x:input weight:input y:output rows:shape columns:shape eps:scalar ");
  CHECK(std::string(ptxgen_kernel_value_name(rmsnorm, 2, 1)) == "f16");
  CHECK(ptxgen_kernel_value_name(rmsnorm, 2, 3) == nullptr);
  CHECK(ptxgen_kernel_value_name(rmsnorm, 0, 0) == nullptr);
  ptxgen_operand_info info{};
  info.struct_bytes = sizeof info;
  CHECK(ptxgen_kernel_get_operand(rmsnorm, 6, &info) == PTXGEN_ERROR_USAGE);

  OwnedBuffer x;
  OwnedBuffer y;
  OwnedBuffer weight;
  upload(device, {3, 3, 3, 3}, x);
  upload(device, std::vector<float>(4, -1), y);
  upload(device, {1, 2, 3, 4}, weight);
  const ptxgen_parameter parameters[] = {{"rows", 1}, {"columns", 4}};
  const ptxgen_operand passed[] = {{"y", ptxgen_buffer_span(y), 0},
                                   {"x", ptxgen_buffer_span(x), 0},
                                   {"weight", ptxgen_buffer_span(weight), 0},
                                   {"eps", {}, 0}};
  good(ptxgen_launch(device, "rmsnorm", parameters, 2, passed, 4, setup.stream, nullptr), device);
  setup.finish();
  const std::vector<float> rows = download(y);
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(rows[i] == Approx(static_cast<double>(i + 1)).epsilon(1e-6));

  CHECK(ptxgen_launch(device, "softmax9", nullptr, 0, nullptr, 0, setup.stream, nullptr) ==
        PTXGEN_ERROR_BUILD);
  CHECK(error_code(device) == "no-kernel");
  const ptxgen_operand unknown[] = {{"bias", ptxgen_buffer_span(x), 0}};
  CHECK(ptxgen_launch(device, "rmsnorm", parameters, 2, unknown, 1, setup.stream, nullptr) ==
        PTXGEN_ERROR_LAUNCH);
  CHECK(error_message(device) == "rmsnorm has no operand 'bias'; it has: x, weight, y, eps");
  CHECK(ptxgen_launch(device, "rmsnorm", parameters, 2, passed, 2, setup.stream, nullptr) ==
        PTXGEN_ERROR_LAUNCH);
  CHECK(error_message(device) ==
        "weight is a null pointer, but rows = 1, columns = 4 needs 4 elements (16 bytes); pass "
        "device memory");
}

TEST_CASE("a plan repeats its launch", "[capi]") {
  LaunchSetup setup;
  ptxgen_device* const device = setup.device;
  OwnedBuffer sum;
  OwnedBuffer one;
  upload(device, std::vector<float>(100, 0), sum);
  upload(device, std::vector<float>(100, 1), one);
  OwnedPlan plan;
  good(plan_vadd(device, ptxgen_buffer_span(sum), ptxgen_buffer_span(sum), ptxgen_buffer_span(one),
                 100, setup.stream, &plan),
       device);
  for (int i = 0; i < 5; ++i) good(ptxgen_plan_launch(plan, nullptr), plan);
  setup.finish();
  CHECK(download(sum) == std::vector<float>(100, 5));
  OwnedStream other;
  good(ptxgen_stream_create(device, PTXGEN_STREAM_NON_BLOCKING, 0, &other), device);
  good(ptxgen_plan_launch(plan, other), plan);
  good(ptxgen_stream_synchronize(other), other);
  CHECK(download(sum) == std::vector<float>(100, 6));
  ptxgen_launch_record record{};
  record.struct_bytes = sizeof record;
  good(ptxgen_plan_record(plan, &record), plan);
  CHECK(std::string(record.kernel) == "vadd");
  OwnedPlan refused;
  CHECK(plan_vadd(device, ptxgen_buffer_span(sum), ptxgen_buffer_span(sum), ptxgen_buffer_span(one),
                  101, setup.stream, &refused) == PTXGEN_ERROR_LAUNCH);
  CHECK(refused.handle == nullptr);
  OwnedPlan gemv;
  CHECK(ptxgen_plan_gemv(device, {0, 4}, ptxgen_buffer_span(one), ptxgen_buffer_span(one), 1, 1,
                         setup.stream, &gemv) == PTXGEN_ERROR_LAUNCH);
}

TEST_CASE("what was prepared is not compiled again", "[capi]") {
  LaunchSetup setup;
  ptxgen_device* const device = setup.device;
  const ptxgen_parameter shape[] = {{"k", 8}, {"n", 40}};
  const ptxgen_kernel_request requests[] = {
      {"gemv", shape, 2}, {"vadd", nullptr, 0}, {"gemv_strided", shape, 2}};
  struct Progress {
    std::size_t calls = 0;
    std::size_t last = 0;
    std::size_t total = 0;
  } progress;
  const auto told = [](void* user, std::size_t done, std::size_t total) {
    auto& at = *static_cast<Progress*>(user);
    ++at.calls;
    at.last = done;
    at.total = total;
  };
  good(ptxgen_prepare(device, requests, 3, told, &progress), device);
  CHECK(progress.calls == 3);
  CHECK(progress.last == 3);
  CHECK(progress.total == 3);
  ptxgen_cache_statistics statistics{};
  statistics.struct_bytes = sizeof statistics;
  good(ptxgen_cache_get_statistics(device, &statistics), device);
  CHECK(statistics.modules == 3);
  CHECK(statistics.compiles == 3);
  OwnedBuffer a;
  OwnedBuffer x;
  OwnedBuffer y;
  upload(device, std::vector<float>(320, 1), a);
  upload(device, std::vector<float>(8, 1), x);
  upload(device, std::vector<float>(40, 0), y);
  good(ptxgen_gemv(device, ptxgen_buffer_span(y), ptxgen_buffer_span(a), ptxgen_buffer_span(x), 8,
                   40, setup.stream, nullptr),
       device);
  setup.finish();
  CHECK(download(y) == std::vector<float>(40, 8));
  good(ptxgen_cache_get_statistics(device, &statistics), device);
  CHECK(statistics.compiles_since_prepare == 0);
  CHECK(statistics.misses_since_prepare == 0);
  CHECK(statistics.hits >= 1);
  good(ptxgen_cache_clear(device), device);
  good(ptxgen_cache_get_statistics(device, &statistics), device);
  CHECK(statistics.modules == 0);
  CHECK(std::string(ptxgen_cache_folder(device)).empty());
  const ptxgen_kernel_request wrong{"gems", nullptr, 0};
  CHECK(ptxgen_prepare(device, &wrong, 1, nullptr, nullptr) == PTXGEN_ERROR_BUILD);
  CHECK(error_code(device) == "no-kernel");
  const ptxgen_parameter unknown{"m", 1};
  const ptxgen_kernel_request bad{"gemv", &unknown, 1};
  CHECK(ptxgen_prepare(device, &bad, 1, nullptr, nullptr) == PTXGEN_ERROR_BUILD);
  good(ptxgen_prepare(device, nullptr, 0, nullptr, nullptr), device);
}

TEST_CASE("a captured launch is replayed, a miss while capturing is told", "[capi]") {
  LaunchSetup setup;
  ptxgen_device* const device = setup.device;
  OwnedBuffer sum;
  OwnedBuffer one;
  upload(device, std::vector<float>(64, 0), sum);
  upload(device, std::vector<float>(64, 1), one);
  const ptxgen_kernel_request request{"vadd", nullptr, 0};
  good(ptxgen_prepare(device, &request, 1, nullptr, nullptr), device);
  CHECK(ptxgen_stream_begin_capture(setup.stream, 9) == PTXGEN_ERROR_USAGE);
  good(ptxgen_stream_begin_capture(setup.stream, PTXGEN_CAPTURE_THREAD), setup.stream);
  std::int32_t capturing = 0;
  good(ptxgen_stream_capturing(setup.stream, &capturing), setup.stream);
  CHECK(capturing == 1);
  CHECK(launch_copy(device, ptxgen_buffer_span(sum), ptxgen_buffer_span(one), 64, setup.stream,
                    nullptr) == PTXGEN_ERROR_LAUNCH);
  CHECK(error_code(device) == "capture-miss");
  for (int i = 0; i < 2; ++i) {
    good(launch_vadd(device, ptxgen_buffer_span(sum), ptxgen_buffer_span(sum),
                     ptxgen_buffer_span(one), 64, setup.stream, nullptr),
         device);
  }
  OwnedGraph graph;
  good(ptxgen_stream_end_capture(setup.stream, &graph), setup.stream);
  CHECK(ptxgen_graph_nodes(graph) == 2);
  for (int i = 0; i < 3; ++i) good(ptxgen_graph_launch(graph, setup.stream), graph);
  setup.finish();
  CHECK(download(sum) == std::vector<float>(64, 6));
  OwnedGraph none;
  CHECK(ptxgen_stream_end_capture(setup.stream, &none) != PTXGEN_OK);
  CHECK(none.handle == nullptr);
}

TEST_CASE("own PTX is loaded, looked into and launched", "[capi]") {
  LaunchSetup setup;
  ptxgen_device* const device = setup.device;
  OwnedProgram program;
  parse_saxpy(program);
  CHECK(ptxgen_program_entry_count(program) == 2);
  OwnedModule module;
  good(ptxgen_module_load(device, program, &module), device);
  ptxgen_span variable{0, 0};
  good(ptxgen_module_variable(module, "launches", &variable), module);
  CHECK(variable.bytes == 4);
  CHECK(variable.address != 0);
  CHECK(ptxgen_module_variable(module, "landings", &variable) == PTXGEN_ERROR_LOAD);
  CHECK(error_code(module) == "not-found");
  OwnedFunction function;
  good(ptxgen_module_function(module, "saxpy", &function), module);
  ptxgen_function* missing = nullptr;
  CHECK(ptxgen_module_function(module, "daxpy", &missing) == PTXGEN_ERROR_LOAD);
  CHECK(ptxgen_function_load(device, program, nullptr, &missing) == PTXGEN_ERROR_LOAD);
  CHECK(error_message(device) == "the program has several kernels; name one of saxpy, fault");
  CHECK(ptxgen_function_load(device, program, "daxpy", &missing) == PTXGEN_ERROR_LOAD);
  CHECK(error_message(device) == "there is no kernel 'daxpy'; there are: saxpy, fault");
  ptxgen_function_info info{};
  info.struct_bytes = sizeof info;
  good(ptxgen_function_get_info(function, &info), function);
  CHECK(std::string(info.name) == "saxpy");
  CHECK(info.registers > 0);
  CHECK(info.max_threads >= 32);
  CHECK(info.signature_known == 1);
  CHECK(info.argument_count == 4);
  CHECK(info.argument_bytes == 24);
  std::uint32_t blocks = 0;
  good(ptxgen_function_occupancy(function, 128, 0, &blocks), function);
  CHECK(blocks >= 1);

  const std::vector<float> x = numbers(100, 1, 1);
  const std::vector<float> y = numbers(100, 3, -0.5f);
  OwnedBuffer x_buffer;
  OwnedBuffer y_buffer;
  upload(device, x, x_buffer);
  upload(device, y, y_buffer);
  const std::uint64_t y_address = ptxgen_buffer_span(y_buffer).address;
  const std::uint64_t x_address = ptxgen_buffer_span(x_buffer).address;
  const float a = 2;
  const std::uint32_t n = 100;
  const ptxgen_geometry shape = geometry(1, 128);
  const ptxgen_argument arguments[] = {
      argument(&y_address, 8, PTXGEN_POINTER), argument(&x_address, 8, PTXGEN_POINTER),
      argument(&a, 4, PTXGEN_FLOAT), argument(&n, 4, PTXGEN_INTEGER)};
  good(ptxgen_function_launch(function, &shape, arguments, 4, setup.stream), function);
  OwnedFunction cached;
  good(ptxgen_function_load(device, program, "saxpy", &cached), device);
  good(ptxgen_function_launch(cached, &shape, arguments, 4, setup.stream), cached);
  unsigned char block[24];
  std::memcpy(block, &y_address, 8);
  std::memcpy(block + 8, &x_address, 8);
  std::memcpy(block + 16, &a, 4);
  std::memcpy(block + 20, &n, 4);
  good(ptxgen_function_launch_packed(function, &shape, block, 24, setup.stream), function);
  setup.finish();
  std::vector<float> expected(100);
  for (std::size_t i = 0; i < 100; ++i) expected[i] = y[i] + 3 * 2 * x[i];
  CHECK(download(y_buffer) == expected);
}

TEST_CASE("arguments are checked against the signature", "[capi]") {
  LaunchSetup setup;
  OwnedProgram program;
  parse_saxpy(program);
  OwnedFunction function;
  good(ptxgen_function_load(setup.device, program, "saxpy", &function), setup.device);
  const std::uint64_t address = 0;
  const float a = 2;
  const std::uint32_t n = 0;
  const ptxgen_geometry shape = geometry(1, 128);
  const ptxgen_argument right[] = {argument(&address, 8, PTXGEN_POINTER),
                                   argument(&address, 8, PTXGEN_INTEGER),
                                   argument(&a, 4, PTXGEN_FLOAT), argument(&n, 4, PTXGEN_ANY)};
  good(ptxgen_function_launch(function, &shape, right, 4, setup.stream), function);
  const auto refused = [&](std::size_t which, const ptxgen_argument& with) {
    ptxgen_argument arguments[4];
    std::copy(std::begin(right), std::end(right), arguments);
    arguments[which] = with;
    const ptxgen_status status =
        ptxgen_function_launch(function, &shape, arguments, 4, setup.stream);
    return std::string(ptxgen_status_name(status)) + ": " + error_message(function);
  };
  CHECK(refused(2, argument(&a, 4, PTXGEN_INTEGER)) ==
        "launch: argument 3 (parameter a) is an integer, the kernel takes .f32");
  CHECK(refused(3, argument(&n, 4, PTXGEN_FLOAT)) ==
        "launch: argument 4 (parameter n) is a float, the kernel takes .u32");
  CHECK(refused(0, argument(&address, 8, PTXGEN_FLOAT)) ==
        "launch: argument 1 (parameter y) is a float, the kernel takes .u64 (a pointer)");
  CHECK(refused(3, argument(&n, 4, PTXGEN_POINTER)) ==
        "launch: argument 4 (parameter n) is a pointer, the kernel takes .u32");
  CHECK(refused(3, argument(&address, 8, PTXGEN_INTEGER)) ==
        "launch: argument 4 (parameter n) has 8 bytes, .u32 takes 4");
  CHECK(refused(1, argument(nullptr, 8, PTXGEN_POINTER)) ==
        "usage: argument 2 (parameter x) has no value");
  CHECK(refused(1, argument(&address, 8, 9)) ==
        "usage: argument 2 (parameter x) has the type 9; valid types are PTXGEN_ANY, _INTEGER, "
        "_FLOAT and _POINTER");
  CHECK(ptxgen_function_launch(function, &shape, right, 3, setup.stream) == PTXGEN_ERROR_LAUNCH);
  CHECK(error_message(function) ==
        "3 arguments were given, saxpy has 4 parameters: .u64 (a pointer) y, .u64 (a pointer) x, "
        ".f32 a, .u32 n");
  CHECK(error_code(function) == "arguments");
  unsigned char block[24] = {};
  CHECK(ptxgen_function_launch_packed(function, &shape, block, 23, setup.stream) ==
        PTXGEN_ERROR_LAUNCH);
  CHECK(error_message(function) == "the block has 23 bytes, the 4 parameters of saxpy take 24");
  const ptxgen_geometry huge = geometry(1, 2048);
  CHECK(ptxgen_function_launch(function, &huge, right, 4, setup.stream) == PTXGEN_ERROR_LAUNCH);
  CHECK(error_code(function) == "launch-limits");
  ptxgen_geometry unset = shape;
  unset.struct_bytes = 0;
  CHECK(ptxgen_function_launch(function, &unset, right, 4, setup.stream) == PTXGEN_ERROR_USAGE);
  CHECK(ptxgen_function_launch(function, nullptr, right, 4, setup.stream) == PTXGEN_ERROR_USAGE);
  CHECK(ptxgen_function_launch(function, &shape, right, 4, nullptr) == PTXGEN_ERROR_USAGE);
  CHECK(ptxgen_function_launch(function, &shape, nullptr, 4, setup.stream) == PTXGEN_ERROR_USAGE);
}

TEST_CASE("a fault is told, poisons, and is got over by a reset", "[capi]") {
  {
    LaunchSetup setup;
    OwnedProgram program;
    parse_saxpy(program);
    OwnedModule module;
    good(ptxgen_module_load(setup.device, program, &module), setup.device);
    OwnedFunction function;
    good(ptxgen_module_function(module, "fault", &function), module);
    const std::uint64_t nowhere = 0x1230;
    const ptxgen_argument where = argument(&nowhere, 8, PTXGEN_POINTER);
    const ptxgen_geometry shape = geometry(1, 1);
    good(ptxgen_function_launch(function, &shape, &where, 1, setup.stream), function);
    CHECK(ptxgen_stream_synchronize(setup.stream) == PTXGEN_ERROR_LAUNCH);
    OwnedError error;
    error.handle = ptxgen_last_error(setup.stream);
    CHECK(std::string(ptxgen_error_code(error)) == "device-fault");
    CHECK(ptxgen_error_driver_status(error) == 700);
    const std::string text = ptxgen_error_text(error);
    CHECK(text.find("thread writes 4 bytes at 0x1230") != std::string::npos);
    CHECK(text.find("launch of kernel 'fault'") != std::string::npos);
    std::int32_t poisoned = 0;
    good(ptxgen_device_poisoned(setup.device, &poisoned), setup.device);
    CHECK(poisoned == 1);
    CHECK(ptxgen_device_synchronize(setup.device) != PTXGEN_OK);
    CHECK(error_code(setup.device) == "context-lost");
    ptxgen_buffer* buffer = nullptr;
    CHECK(ptxgen_buffer_create(setup.device, 16, &buffer) != PTXGEN_OK);
  }
  ptxgen_device_options options{};
  options.struct_bytes = sizeof options;
  options.ignore_environment = 1;
  good(ptxgen_device_reset("emulator", &options));
  LaunchSetup afresh;
  OwnedBuffer buffer;
  upload(afresh.device, std::vector<float>(16, 1), buffer);
  good(launch_vadd(afresh.device, ptxgen_buffer_span(buffer), ptxgen_buffer_span(buffer),
                   ptxgen_buffer_span(buffer), 16, afresh.stream, nullptr),
       afresh.device);
  afresh.finish();
  CHECK(download(buffer) == std::vector<float>(16, 2));
}

TEST_CASE("images and compilers: what is there works, what is missing is told", "[capi]") {
  LaunchSetup setup;
  OwnedProgram program;
  parse_saxpy(program);
  const unsigned char cubin[64] = {0x7f, 'E', 'L', 'F', 2, 1};
  OwnedModule module;
  CHECK(ptxgen_module_load_image(setup.device, cubin, sizeof cubin, &module) == PTXGEN_ERROR_LOAD);
  CHECK(module.handle == nullptr);
  CHECK(ptxgen_module_load_image(setup.device, nullptr, 0, &module) == PTXGEN_ERROR_USAGE);

  OwnedImage image;
  const ptxgen_status assembled = ptxgen_program_assemble(program, nullptr, "sm_80", &image);
  if (assembled == PTXGEN_OK) {
    ptxgen_image_info info{};
    info.struct_bytes = sizeof info;
    good(ptxgen_image_get_info(image, &info), image);
    CHECK(info.bytes > 100);
    CHECK(std::memcmp(info.data,
                      "\x7f"
                      "ELF",
                      4) == 0);
    CHECK(info.registers > 0);
    CHECK(std::strlen(info.tool) > 4);
  } else {
    CHECK(assembled == PTXGEN_ERROR_ASSEMBLE);
    CHECK(error_code(program) == "no-assembler");
    skip_part("no assembler: the image of a program is not looked at");
  }

  OwnedProgram compiled;
  const std::string source = "extern \"C\" __global__ void twice(float* y) { y[0] *= 2; }\n";
  const char* const options[] = {"--std=c++17"};
  const ptxgen_status status = ptxgen_program_compile_cuda(
      setup.device, source.data(), source.size(), "twice.cu", options, 1, &compiled);
  if (status == PTXGEN_OK) {
    CHECK(ptxgen_program_entry_count(compiled) == 1);
    CHECK(std::string(ptxgen_program_entry(compiled, 0)) == "twice");
    const std::string broken = "__global__ void twice(float* y) { y[0] *= two; }\n";
    OwnedProgram refused;
    CHECK(ptxgen_program_compile_cuda(setup.device, broken.data(), broken.size(), "twice.cu",
                                      nullptr, 0, &refused) == PTXGEN_ERROR_BUILD);
    CHECK(error_text(setup.device).find("two") != std::string::npos);
  } else {
    CHECK(status == PTXGEN_ERROR_BUILD);
    CHECK(error_code(setup.device) == "no-nvrtc");
    skip_part("no NVRTC: nothing is compiled from CUDA C++");
  }
}
