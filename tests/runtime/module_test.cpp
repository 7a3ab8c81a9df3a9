// tests/runtime/module_test.cpp - refused PTX: logs, lines, call sites, versions
#include <catch2/catch.hpp>

#include <array>
#include <fstream>
#include <iterator>

#include "ptxgen/kernels/elementwise/elementwise.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/runtime/module/module.hpp"
#include "runtime/object_support.hpp"
#include "support/scripted_driver.hpp"
#include "support/temporary_directory.hpp"

namespace {

using namespace ptxgen;
using namespace ptxgen::test;

struct RefusingDriver {
  ScriptedDriver driver;
  TemporaryDirectory folder;
  Settings settings = [this] {
    Settings s;
    s.temp_dir = folder.path();
    return s;
  }();
  Context open() { return Context(Device::open(driver.table, 0, DeviceKind::Cuda, settings)); }

  /// What loading `text` throws.
  Error load_error(const std::string& text) {
    const Context context = open();
    const auto error =
        error_of([&] { static_cast<void>(Module::load(context, text, {}, "test.ptx")); });
    REQUIRE(error);
    return *error;
  }
};

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// The path in "...; the PTX is in PATH".
std::string dumped(const Error& error) {
  const std::string words = "the PTX is in ";
  const std::size_t at = error.message.find(words);
  return at == std::string::npos ? "" : error.message.substr(at + words.size());
}

}  // namespace

TEST_CASE("refused PTX: words, line, excerpt, file, versions") {
  RefusingDriver f;
  f.driver.jit_result = driver::CUDA_ERROR_INVALID_PTX;
  f.driver.jit_error_log =
      "ptxas application ptx input, line 11; error   : Unknown something\n"
      "ptxas application ptx input, line 12; error   : Another thing\n"
      "ptxas fatal   : Ptx assembly aborted due to errors\n";
  f.driver.jit_info_log = "ptxas info    : 0 bytes gmem\n";
  const std::string text = kernel_text("mov.b32 %r0, 1;\nmov.b32 %r1, 2;\nmov.b32 %r2, 3;\nret;");
  const Error error = f.load_error(text);
  CHECK(error.stage == Stage::Load);
  CHECK(error.code == "rejected");
  CHECK(error.driver_status == 218);
  CHECK(contains(error.message, "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (218): "));
  CHECK(contains(error.message, "; Unknown something; "));
  CHECK(error.file == "test.ptx");
  CHECK(error.kernel == "f");
  CHECK(error.line == 11);
  CHECK(error.excerpt ==
        "   9 | .reg .f32 %f<12>;\n"
        "  10 | mov.b32 %r0, 1;\n"
        "> 11 | mov.b32 %r1, 2;\n"
        "  12 | mov.b32 %r2, 3;\n"
        "  13 | ret;");
  CHECK(error.log == f.driver.jit_error_log + f.driver.jit_info_log);
  CHECK(error.target == "sm_90, PTX 7.8; device sm_90, driver 13.0 with PTX up to 9.0");
  REQUIRE(error.causes.size() == 1);
  CHECK(error.causes[0].message == "Another thing");
  CHECK(error.causes[0].line == 12);
  CHECK(contains(error.causes[0].excerpt, "> 12 | mov.b32 %r2, 3;"));
  CHECK(content_of(dumped(error)) == text);
  CHECK(contains(error.what(), dumped(error)));
  // The same text gets the same name, another text another.
  CHECK(dumped(f.load_error(text)) == dumped(error));
  CHECK(dumped(f.load_error(text + "\n")) != dumped(error));
}

TEST_CASE("refused PTX of a built kernel names the C++ call") {
  RefusingDriver f;
  f.driver.jit_result = driver::CUDA_ERROR_INVALID_PTX;
  const auto kernel = Vadd{}.build(ptx::target("sm_90"));
  const std::string text = kernel.ptx();
  const std::size_t at = text.find("add.rn.f32");
  REQUIRE(at != std::string::npos);
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  f.driver.jit_error_log = "ptxas application ptx input, line " + std::to_string(line + 1) +
                           "; error   : Arguments mismatch for instruction 'add'\n";
  const Context context = f.open();
  const auto error = error_of([&] { static_cast<void>(Module::load(context, kernel.module())); });
  REQUIRE(error);
  CHECK(error->kernel == "vadd");
  CHECK(contains(error->excerpt, "add.rn.f32"));
  REQUIRE(error->site.known());
  CHECK(contains(error->site.file, "elementwise.cpp"));
  CHECK(contains(error->what(), "elementwise.cpp:" + std::to_string(error->site.line)));
}

TEST_CASE("JIT logs are whole however long they are") {
  RefusingDriver f;
  std::string log;
  while (log.size() < 300'000) log += "ptxas info    : line " + std::to_string(log.size()) + "\n";
  SECTION("on success") {
    f.driver.jit_info_log = log;
    {
      const Context context = f.open();
      const Module module = Module::load(context, kernel_text());
      CHECK(module.info_log() == log);
      CHECK(f.driver.jit_calls > 1);
      CHECK(f.driver.modules == 1);
    }
    CHECK(f.driver.modules == 0);
    CHECK(f.driver.contexts == 0);
  }
  SECTION("on failure") {
    f.driver.jit_result = driver::CUDA_ERROR_INVALID_PTX;
    f.driver.jit_error_log = log;
    CHECK(f.load_error(kernel_text()).log == log);
  }
}

TEST_CASE("PTX newer than the driver is refused before the JIT, with what needs it") {
  RefusingDriver f;
  f.driver.sm = 100;
  f.driver.driver_version = 12060;  // PTX 8.5
  f.driver.sm = 90;
  SECTION("an instruction") {
    f.driver.driver_version = 12020;  // PTX 8.2
    const Error error =
        f.load_error(kernel_text("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
                                 "[%r0], [%rd0], 16, [%r1];\nret;",
                                 "8.6"));
    CHECK(error.code == "ptx-too-new");
    CHECK(contains(error.message, "needs PTX 8.6, driver 12.2 supports up to 8.2"));
    CHECK(contains(error.message, "cp.async.bulk"));
    CHECK(error.line == 10);
    CHECK(contains(error.excerpt, "> 10 | cp.async.bulk"));
    CHECK(f.driver.jit_calls == 0);
    CHECK(!dumped(error).empty());
  }
  SECTION("the version alone") {
    const Error error = f.load_error(kernel_text("ret;", "9.0"));
    CHECK(error.code == "ptx-too-new");
    CHECK(contains(error.message,
                   "driver 12.6 supports up to 8.5; the PTX has .version 9.0, but nothing in it "
                   "needs more than 7.8: build it for a lower version"));
    CHECK(f.driver.jit_calls == 0);
  }
  SECTION("text that is not understood") {
    const Error error = f.load_error(".version 9.0\n.target sm_90\nnonsense\n");
    CHECK(error.code == "ptx-too-new");
    CHECK(contains(error.message, "driver 12.6 supports up to 8.5; the PTX has .version 9.0"));
  }
  SECTION("a driver that says so itself") {
    f.driver.driver_version = 13050;  // beyond the table: perhaps it knows more
    f.driver.jit_result = driver::CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    const Error error = f.load_error(kernel_text("ret;", "9.9"));
    CHECK(f.driver.jit_calls == 1);
    CHECK(error.code == "ptx-too-new");
    CHECK(error.driver_status == 222);
    CHECK(contains(error.message, "the PTX has .version 9.9"));
  }
  SECTION("equal is not newer") {
    const Context context = f.open();
    static_cast<void>(Module::load(context, kernel_text("ret;", "8.5")));
    CHECK(f.driver.jit_calls == 1);
  }
}

TEST_CASE("PTX for another GPU is refused with both names") {
  RefusingDriver f;
  const auto refused = [&](const char* target) {
    const Error error = f.load_error(kernel_text("ret;", "9.0", target));
    CHECK(error.code == "wrong-target");
    CHECK(f.driver.jit_calls == 0);
    return error.message;
  };
  CHECK(contains(refused("sm_100"),
                 "the PTX is for sm_100, which runs on that and newer GPUs; Scripted GPU is sm_90: "
                 "build for sm_90"));
  f.driver.sm = 103;
  CHECK(contains(refused("sm_90a"), "sm_90a, which runs on that GPU only; Scripted GPU is sm_103"));
  f.driver.sm = 120;
  CHECK(contains(refused("sm_100f"), "sm_100f, which runs on that family of GPUs only"));
  f.driver.sm = 103;
  for (const char* const good : {"sm_100f", "sm_103a", "sm_90", "sm_103"}) {
    const Context context = f.open();
    static_cast<void>(Module::load(context, kernel_text("ret;", "9.0", good)));
  }
}

TEST_CASE("what is not the fault of the PTX keeps the driver's words") {
  RefusingDriver f;
  f.driver.jit_result = driver::CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
  const Error error = f.load_error(kernel_text());
  CHECK(error.code == "driver-call");
  CHECK(error.message ==
        "cuModuleLoadDataEx: CUDA_ERROR_JIT_COMPILER_NOT_FOUND (221): PTX JIT compiler library "
        "not found");
}

TEST_CASE("JIT options reach the driver, a cold load is unlike any other") {
  RefusingDriver f;
  const Context context = f.open();
  ModuleOptions options;
  options.max_registers = 40;
  options.optimization = 2;
  options.line_info = true;
  static_cast<void>(Module::load(context, kernel_text(), options));
  CHECK(f.driver.jit_options.at(driver::CU_JIT_MAX_REGISTERS) == 40);
  CHECK(f.driver.jit_options.at(driver::CU_JIT_OPTIMIZATION_LEVEL) == 2);
  CHECK(f.driver.jit_options.at(driver::CU_JIT_GENERATE_LINE_INFO) == 1);
  CHECK(f.driver.jit_text == kernel_text());
  static_cast<void>(Module::load(context, kernel_text()));
  CHECK(f.driver.jit_options.count(driver::CU_JIT_MAX_REGISTERS) == 0);
  CHECK(f.driver.jit_options.count(driver::CU_JIT_GENERATE_LINE_INFO) == 0);

  options = {};
  options.cold = true;
  static_cast<void>(Module::load(context, kernel_text(), options));
  const std::string first = f.driver.jit_text;
  static_cast<void>(Module::load(context, kernel_text(), options));
  CHECK(first != f.driver.jit_text);
  CHECK(ptx::equal(ptx::parse(first), ptx::parse(kernel_text())));
}

TEST_CASE("a name that a module does not have") {
  RefusingDriver f;
  const Context context = f.open();
  const Module module = Module::load(context, kernel_text());
  CHECK(refusal([&] { static_cast<void>(module.function("missing")); }) ==
        "not-found: cuModuleGetFunction: CUDA_ERROR_NOT_FOUND (500): named symbol not "
        "found, looking for the kernel 'missing'; the module has f");
  CHECK(refusal([&] { static_cast<void>(module.variable("table")); }) ==
        "not-found: cuModuleGetGlobal_v2: CUDA_ERROR_NOT_FOUND (500): named symbol not "
        "found, looking for the variable 'table'");
}

TEST_CASE("a file that another program has put in the dump's place is not touched") {
  RefusingDriver f;
  f.driver.jit_result = driver::CUDA_ERROR_INVALID_PTX;
  const std::string path = dumped(f.load_error(kernel_text()));
  std::ofstream(path, std::ios::trunc) << "precious";
  const Error error = f.load_error(kernel_text());
  CHECK(dumped(error) != path);
  CHECK(content_of(dumped(error)) == kernel_text());
  CHECK(content_of(path) == "precious");
  f.settings.temp_dir = f.folder.path() + "/not-there";
  CHECK(contains(f.load_error(kernel_text()).message,
                 "the PTX could not be written to " + f.settings.temp_dir));
}
