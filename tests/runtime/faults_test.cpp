// tests/runtime/faults_test.cpp - every driver call fails once, with every code
#include <catch2/catch.hpp>

#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>

#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/kernels/elementwise/elementwise.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/module/module.hpp"
#include "runtime/object_support.hpp"
#include "support/fault_table.hpp"
#include "support/harness.hpp"
#include "support/temporary_directory.hpp"

namespace {

using namespace ptxgen;
using namespace ptxgen::test;

// What may go wrong -------------------------------------------------------------------------------

struct Returns {
  std::string_view symbol;
  bool earlier;
  std::vector<driver::CUresult> codes;
};

const std::vector<Returns>& returns() {
  using namespace driver;
  constexpr auto INVALID_VALUE = CUDA_ERROR_INVALID_VALUE;
  constexpr auto OUT_OF_MEMORY = CUDA_ERROR_OUT_OF_MEMORY;
  constexpr auto NOT_INITIALIZED = CUDA_ERROR_NOT_INITIALIZED;
  constexpr auto DEINITIALIZED = CUDA_ERROR_DEINITIALIZED;
  constexpr auto NO_DEVICE = CUDA_ERROR_NO_DEVICE;
  constexpr auto INVALID_DEVICE = CUDA_ERROR_INVALID_DEVICE;
  constexpr auto INVALID_IMAGE = CUDA_ERROR_INVALID_IMAGE;
  constexpr auto INVALID_CONTEXT = CUDA_ERROR_INVALID_CONTEXT;
  constexpr auto NO_BINARY_FOR_GPU = CUDA_ERROR_NO_BINARY_FOR_GPU;
  constexpr auto INVALID_PTX = CUDA_ERROR_INVALID_PTX;
  constexpr auto JIT_COMPILER_NOT_FOUND = CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
  constexpr auto UNSUPPORTED_PTX_VERSION = CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  constexpr auto SHARED_OBJECT_SYMBOL_NOT_FOUND = CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
  constexpr auto SHARED_OBJECT_INIT_FAILED = CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
  constexpr auto INVALID_HANDLE = CUDA_ERROR_INVALID_HANDLE;
  constexpr auto ILLEGAL_STATE = CUDA_ERROR_ILLEGAL_STATE;
  constexpr auto NOT_FOUND = CUDA_ERROR_NOT_FOUND;
  constexpr auto NOT_READY = CUDA_ERROR_NOT_READY;
  constexpr auto LAUNCH_FAILED = CUDA_ERROR_LAUNCH_FAILED;
  constexpr auto LAUNCH_OUT_OF_RESOURCES = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  constexpr auto LAUNCH_TIMEOUT = CUDA_ERROR_LAUNCH_TIMEOUT;
  constexpr auto LAUNCH_INCOMPATIBLE_TEXTURING = CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING;
  constexpr auto COOPERATIVE_LAUNCH_TOO_LARGE = CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  constexpr auto NOT_PERMITTED = CUDA_ERROR_NOT_PERMITTED;
  constexpr auto NOT_SUPPORTED = CUDA_ERROR_NOT_SUPPORTED;
  constexpr auto SYSTEM_DRIVER_MISMATCH = CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  constexpr auto COMPAT_NOT_SUPPORTED_ON_DEVICE = CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE;
  constexpr auto STREAM_CAPTURE_INVALIDATED = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  constexpr auto STREAM_CAPTURE_UNJOINED = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  constexpr auto STREAM_CAPTURE_IMPLICIT = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  constexpr auto STREAM_CAPTURE_WRONG_THREAD = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  constexpr auto EXTERNAL_DEVICE = CUDA_ERROR_EXTERNAL_DEVICE;
  constexpr auto FUNCTION_NOT_LOADED = CUDA_ERROR_FUNCTION_NOT_LOADED;
  constexpr auto UNKNOWN = CUDA_ERROR_UNKNOWN;
  static const std::vector<Returns> kReturns = {
#define PTXGEN_DRIVER_RETURNS(symbol, earlier, ...) {#symbol, earlier, {__VA_ARGS__}},
#include "runtime/driver_returns.def"
  };
  return kReturns;
}

/// Errors of earlier work that surface in calls that may report them.
constexpr driver::CUresult kEarlier[] = {
    driver::CUDA_ERROR_ILLEGAL_ADDRESS, driver::CUDA_ERROR_LAUNCH_FAILED,
    driver::CUDA_ERROR_MISALIGNED_ADDRESS, driver::CUDA_ERROR_ASSERT,
    driver::CUDA_ERROR_ECC_UNCORRECTABLE};

/// Every code that the function may return.
std::vector<driver::CUresult> codes_of(std::string_view symbol) {
  for (const Returns& row : returns()) {
    if (row.symbol != symbol) continue;
    std::vector<driver::CUresult> codes = row.codes;
    if (row.earlier) codes.insert(codes.end(), std::begin(kEarlier), std::end(kEarlier));
    return codes;
  }
  return {};
}

/// Every code that there is, but the one that is no failure of a query.
std::vector<driver::CUresult> all_codes(std::string_view symbol) {
  const bool query = symbol == "cuStreamQuery" || symbol == "cuEventQuery";
  std::vector<driver::CUresult> codes;
  for (const driver::CUresult code : {
#define PTXGEN_DRIVER_RESULT(name, value, words) driver::name,
#include "ptxgen/driver/results.def"
       }) {
    if (code == driver::CUDA_SUCCESS) continue;
    if (!query || code != driver::CUDA_ERROR_NOT_READY) codes.push_back(code);
  }
  return codes;
}

// The scenario ------------------------------------------------------------------------------------

constexpr std::uint32_t kCount = 300;

/// Adds up what the dynamic shared memory of a thread holds; needs an opt-in at 64 KiB.
std::string shared_kernel() {
  return ".version 7.8\n.target sm_80\n.address_size 64\n"
         ".extern .shared .align 16 .b8 arena[];\n"
         ".global .align 4 .u32 counter;\n"
         ".visible .entry big(.param .u64 p)\n{\n"
         ".reg .b64 %rd<3>;\n.reg .b32 %r<3>;\n"
         "ld.param.u64 %rd0, [p];\n"
         "mov.u32 %r0, 42;\n"
         "st.shared.u32 [arena+65000], %r0;\n"
         "bar.sync 0;\n"
         "ld.shared.u32 %r1, [arena+65000];\n"
         "st.global.u32 [%rd0], %r1;\n"
         "ret;\n}\n";
}

/// Host memory outlives all work that may still be queued.
struct Host {
  std::vector<float> a = std::vector<float>(kCount);
  std::vector<float> b = std::vector<float>(kCount);
  std::vector<float> c = std::vector<float>(kCount);
  std::vector<float> expected = std::vector<float>(kCount);
  Host() {
    std::iota(a.begin(), a.end(), 1.0f);
    std::iota(b.begin(), b.end(), -7.5f);
    for (std::size_t i = 0; i < kCount; ++i) expected[i] = a[i] + b[i];
  }
};

/// What the steps share. Goes in the wrong order on purpose: the context before its objects.
struct World {
  Buffer<f32> a, b, c;
  std::optional<Graph> graph;
  std::optional<Function> vadd, big;
  std::optional<Module> module, shared;
  std::optional<Event> start, end;
  std::optional<Stream> stream, copies;
  std::optional<Context> context;
  std::optional<Device> device;
};

/// A failed check of a value, not of a driver call.
struct Wrong {
  std::string what;
};
void expect(bool good, const char* what) {
  if (!good) throw Wrong{what};
}

struct Scenario {
  const driver::Table& table;
  Settings settings;
  Host& host;
  BuiltKernel kernel = Vadd{}.build(ptx::target("sm_90"));

  void launch_vadd(World& w, const Stream& stream) const {
    const auto block = Kernel<Ptr<f32>, Ptr<f32>, Ptr<f32>, u32>::pack(w.a.address(), w.b.address(),
                                                                       w.c.address(), kCount);
    w.vadd->launch(stream, Vadd{kCount}.geometry(), {block.data(), block.size()});
  }
  void open(World& w) const { w.device = Device::open(table, 0, DeviceKind::Emulator, settings); }
  void make_context(World& w) const { w.context.emplace(*w.device); }
  void allocate(World& w) const {
    w.a = Buffer<f32>(*w.context, kCount);
    w.b = Buffer<f32>(*w.context, kCount);
    w.c = Buffer<f32>(*w.context, kCount);
  }
  void make_streams(World& w) const {
    w.stream.emplace(*w.context);
    w.copies.emplace(*w.context, Stream::Kind::Blocking);
    w.start.emplace(*w.context);
    w.end.emplace(*w.context);
  }
  void load(World& w) const {
    w.module = Module::load(*w.context, kernel.module());
    w.vadd = w.module->function("vadd");
    w.shared = Module::load(*w.context, shared_kernel());
    w.big = w.shared->function("big");
    expect(w.shared->variable("counter").bytes == 4, "size of a variable");
  }
  void copy_in(World& w) const {
    w.a.write(host.a);
    w.b.write(host.b);
    w.c.fill_bytes(0);
  }
  void launch(World& w) const {
    w.stream->record(*w.start);
    launch_vadd(w, *w.stream);
    w.stream->record(*w.end);
    w.stream->synchronize();
    w.end->synchronize();
    expect(w.stream->done() && w.end->done(), "all is done");
    expect(w.end->milliseconds_since(*w.start) >= 0, "time goes on");
    w.c.read(host.c);
    expect(host.c == host.expected, "sums");
  }
  void copies(World& w) const {
    w.c.write(host.a, &*w.copies);
    w.copies->record(*w.start);
    w.stream->wait(*w.start);
    w.c.copy(w.b, &*w.stream);
    w.c.read(host.c, &*w.stream);
    w.stream->synchronize();
    expect(host.c == host.b, "a copy in the device");
    w.c.copy(w.a);
    w.c.read(host.c);
    expect(host.c == host.a, "a copy in the device, waited for");
  }
  void large_shared(World& w) const {
    expect(w.big->blocks_per_multiprocessor(32, 65536) > 0, "blocks fit");
    const auto block = Kernel<Ptr<f32>>::pack(w.c.address());
    w.big->launch(*w.stream, {{}, {}, 66000}, {block.data(), block.size()});
    w.stream->synchronize();
  }
  void capture(World& w) const {
    // A stream of its own: if something goes wrong the capture goes with it.
    const Stream stream(*w.context);
    stream.begin_capture();
    expect(stream.capturing(), "a capture");
    w.c.copy(w.a, &stream);
    launch_vadd(w, stream);
    w.graph = stream.end_capture();
    expect(w.graph->nodes() == 2, "nodes");
  }
  void replay(World& w) const {
    w.c.fill_bytes(0xff);
    w.graph->launch(*w.stream);
    w.graph->launch(*w.stream);
    w.stream->synchronize();
    w.c.read(host.c);
    expect(host.c == host.expected, "sums by the graph");
  }
  void finish(World& w) const {
    expect(w.context->memory().total > 0, "memory");
    w.context->synchronize();
  }

  using Step = void (Scenario::*)(World&) const;
  static constexpr Step kSteps[] = {
      &Scenario::open,         &Scenario::make_context, &Scenario::allocate,
      &Scenario::make_streams, &Scenario::load,         &Scenario::copy_in,
      &Scenario::launch,       &Scenario::copies,       &Scenario::large_shared,
      &Scenario::capture,      &Scenario::replay,       &Scenario::finish};

  /// All steps. One that fails is repeated with the same objects or, after a fault of the device,
  /// everything from the start with new ones. The errors on the way.
  std::vector<Error> run() const {
    std::vector<Error> errors;
    auto world = std::make_unique<World>();
    for (std::size_t i = 0; i < std::size(kSteps);) {
      try {
        (this->*kSteps[i])(*world);
        ++i;
      } catch (const Error& error) {
        errors.push_back(error);
        if (errors.size() > 3) break;
        if (!world->context || !world->context->poisoned()) continue;
        world = std::make_unique<World>();
        i = 0;
      }
    }
    return errors;
  }
};

/// One failure: what must hold after it, as words; empty if all does.
std::string problem_with(const FaultTable& faults, const std::vector<Error>& errors,
                         const std::vector<std::string>& lines, driver::CUresult code) {
  const driver::FunctionInfo* const failed = faults.failed();
  if (failed == nullptr) return "the call was not reached";
  std::string reports;
  for (const Error& error : errors) reports += "\nthrown: " + std::string(error.what());
  for (const std::string& line : lines) reports += "\nlogged: " + line;
  const std::string named = std::string(failed->symbol) + ": " + driver::result_text(code);
  if (errors.size() + lines.size() != 1) return "not exactly one report" + reports;
  if (!errors.empty()) {
    if (errors[0].driver_status != code) return "another status" + reports;
    if (errors[0].message.find(named) != 0) return "the call is not named" + reports;
  } else if (lines[0].find(named) == std::string::npos) {
    return "the call is not named" + reports;
  }
  if (!faults.leaked().empty()) return "leaked: " + faults.leaked() + reports;
  driver::CUcontext current = nullptr;
  static_cast<void>(faults.table().ctx_get_current(&current));
  if (current != nullptr) return "a context was left current" + reports;
  return {};
}

struct Harness {
  CaughtLog log;
  TemporaryDirectory folder;
  Host host;
  FaultTable faults{driver::emulated::table()};
  Scenario scenario{faults.table(), settings(), host};

  Settings settings() const {
    Settings s;
    s.temp_dir = folder.path();
    return s;
  }
  std::string fail(std::uint64_t nth, driver::CUresult code) {
    faults.fail(nth, code);
    std::vector<Error> errors;
    try {
      errors = scenario.run();
    } catch (const Wrong& wrong) {
      return "wrong: " + wrong.what;
    }
    return problem_with(faults, errors, log.take(), code);
  }
};

}  // namespace

TEST_CASE("the scenario without a failure") {
  Harness harness;
  harness.faults.fail(0, driver::CUDA_SUCCESS);
  const std::vector<Error> errors = harness.scenario.run();
  for (const Error& error : errors) UNSCOPED_INFO(error.what());
  CHECK(errors.empty());
  CHECK(harness.log.take().empty());
  CHECK(harness.faults.leaked() == "");
  for (const driver::FunctionInfo* const call : harness.faults.rows()) {
    INFO(call->symbol);
    CHECK(!codes_of(call->symbol).empty());
  }
}

TEST_CASE("any call of the driver may fail with any code") {
  Harness harness;
  harness.faults.fail(0, driver::CUDA_SUCCESS);
  REQUIRE(harness.scenario.run().empty());
  const auto calls = harness.faults.rows();
  std::uint64_t tried = 0;
  std::uint64_t at = 0;
  for (std::uint64_t n = 1; n <= calls.size(); ++n) {
    const std::vector<driver::CUresult> codes =
        test::full() ? all_codes(calls[n - 1]->symbol) : codes_of(calls[n - 1]->symbol);
    for (const driver::CUresult code : codes) {
      if (!test::takes(at++, 4, 29)) continue;
      ++tried;
      INFO("call " << n << ", " << calls[n - 1]->symbol << " returns "
                   << driver::result_name(code));
      const std::string problem = harness.fail(n, code);
      CHECK(problem == "");
    }
  }
  CHECK(tried >= at / (test::full() ? 1 : 30));
  std::cout << calls.size() << " calls, " << tried << " failures injected\n";
}
