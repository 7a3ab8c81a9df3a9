// tests/runtime/device_test.cpp - opening devices, targets, contexts left as found
#include <catch2/catch.hpp>

#include <array>
#include <optional>

#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/module/module.hpp"
#include "runtime/object_support.hpp"
#include "support/scripted_driver.hpp"

namespace {

using namespace ptxgen;
using namespace ptxgen::test;

/// Settings of a machine without a driver.
Settings bare() {
  Settings settings;
  settings.search_usual_places = false;
  return settings;
}

}  // namespace

TEST_CASE("a device says what it is") {
  ScriptedDriver driver;
  driver.sm = 89;
  const Device device = Device::open(driver.table, 0);
  const DeviceInfo& info = device.info();
  CHECK(info.name == "Scripted GPU");
  CHECK(info.sm == 89);
  CHECK(info.target == "sm_89");
  CHECK(device.target().name == "sm_89");
  CHECK(info.driver_version == 13000);
  CHECK(info.newest_ptx == 90);
  CHECK(info.limits.shared_per_block_opt_in == 227 * 1024);
  CHECK(info.limits.grid[1] == 65535);
  CHECK(info.limits.memory_bytes == 1 << 20);
  const Device copy = device;
  CHECK(&copy.table() == &driver.table);
}

TEST_CASE("the planner sees an emulated device as its row of the GPU table, but for the target") {
  // GPUs get their ordinals in the order in which they are opened: 0 stays the H200 for the tests
  // that follow in this process.
  static_cast<void>(Device::open("emulator:h200", bare()));
  for (const ptx::Gpu& row : ptx::gpus()) {
    INFO(row.name);
    const DeviceInfo info = Device::open("emulator:" + std::string(row.name), bare()).info();
    CHECK(info.limits.bandwidth_gb_per_s == Approx(row.bandwidth_gb_per_s).epsilon(0.001));
    const ptx::Gpu gpu = gpu_of(info);
    CHECK(gpu.name == row.name);
    CHECK(gpu.full_name == row.full_name);
    CHECK(gpu.target == info.target);
    CHECK(gpu.sms == row.sms);
    CHECK(gpu.clock_mhz == row.clock_mhz);
    CHECK(gpu.bandwidth_gb_per_s == row.bandwidth_gb_per_s);
    CHECK(gpu.memory_bytes == row.memory_bytes);
    CHECK(gpu.l2_bytes == row.l2_bytes);
    CHECK(gpu.shared_per_sm == row.shared_per_sm);
    CHECK(gpu.shared_per_block == row.shared_per_block);
    CHECK(gpu.registers_per_sm == row.registers_per_sm);
    CHECK(gpu.threads_per_sm == row.threads_per_sm);
    CHECK(gpu.blocks_per_sm == row.blocks_per_sm);
    CHECK(gpu.dram == row.dram);
    CHECK(gpu.measured.latency_ns == row.measured.latency_ns);
    CHECK(gpu.measured.read_share == row.measured.read_share);
  }
}

TEST_CASE("a part that is in no row is planned for by its own figures") {
  DeviceInfo info = Device::open("emulator:h100", bare()).info();
  info.limits.multiprocessors = 113;
  info.limits.bandwidth_gb_per_s = 2039;
  const ptx::Gpu gpu = gpu_of(info);
  CHECK(gpu.name == "sm_90");
  CHECK(gpu.full_name == "sm_90");
  CHECK(gpu.sms == 113);
  CHECK(gpu.bandwidth_gb_per_s == 2039);
  CHECK(gpu.dram == ptx::Dram::HBM);
  CHECK(gpu.measured.latency_ns == 0);  // never measured
  // A driver that tells no clock: as much for each multiprocessor as the relative has.
  info.limits.bandwidth_gb_per_s = 0;
  CHECK(gpu_of(info).bandwidth_gb_per_s == Approx(3350.0 * 113 / 132));
  // The same multiprocessors, another memory: no such part either.
  info.limits.multiprocessors = 132;
  info.limits.bandwidth_gb_per_s = 2400;
  CHECK(gpu_of(info).name == "sm_90");
  CHECK(gpu_of(info).bandwidth_gb_per_s == 2400);
  info.limits.bandwidth_gb_per_s = 4917;  // the product of an H200's clock and width
  CHECK(gpu_of(info).name == "h200");
  CHECK(gpu_of(info).bandwidth_gb_per_s == 4800);
}

TEST_CASE("kernels are built for the newest base target the device and its driver know") {
  CaughtLog log;
  ScriptedDriver driver;
  const auto target = [&](int sm, int version) {
    driver.sm = sm;
    driver.driver_version = version;
    return Device::open(driver.table, 0).info().target;
  };
  CHECK(target(90, 13000) == "sm_90");
  CHECK(target(121, 13000) == "sm_121");
  CHECK(log.take().empty());
  SECTION("a device of the future") {
    CHECK(target(130, 14000) == "sm_121");
    const auto lines = log.take();
    REQUIRE(lines.size() == 1);
    CHECK(lines[0] ==
          "Scripted GPU (compute capability 13.0) is not in the target table, or its driver (CUDA "
          "14.0) cannot compile for it; kernels are built for sm_121");
  }
  SECTION("a driver that is older than the device") {
    CHECK(target(89, 11060) == "sm_87");
    CHECK(log.take().size() == 1);
  }
  SECTION("a device that is older than all targets") {
    CHECK(refusal([&] { static_cast<void>(target(70, 13000)); }) ==
          "unsupported-device: Scripted GPU (compute capability 7.0) with a driver of CUDA 13.0 is "
          "older than every target; the oldest is sm_75");
  }
}

TEST_CASE("devices that are not there") {
  ScriptedDriver driver;
  CHECK(refusal([&] { static_cast<void>(Device::open(driver.table, 1)); }) ==
        "no-device: there is no device 1; the driver has 1, numbered from 0");
  driver.devices = 0;
  CHECK(refusal([&] { static_cast<void>(Device::open(driver.table, 0)); }) ==
        "no-device: there is no device 0; the driver has none");
  driver.table.init = [](unsigned) { return driver::CUDA_ERROR_NO_DEVICE; };
  const auto error = error_of([&] { static_cast<void>(Device::open(driver.table, 0)); });
  REQUIRE(error);
  CHECK(error->stage == Stage::Device);
  CHECK(error->driver_status == 100);
  CHECK(error->message == "cuInit: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected");
}

TEST_CASE("devices by name") {
  const Settings settings = bare();
  CHECK(Device::open("emulator:rtx4090", settings).info().target == "sm_89");
  CHECK(Device::open("emulator", settings).info().kind == DeviceKind::Emulator);
  CHECK(Device::open("auto", settings).info().target == "sm_90");
  CHECK(contains(refusal([&] { static_cast<void>(Device::open("emulator:voodoo", settings)); }),
                 "bad-device: there is no emulated GPU 'voodoo'; there are t4, "));
  for (const char* const wrong : {"gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "emulators"}) {
    CHECK(contains(refusal([&] { static_cast<void>(Device::open(wrong, settings)); }),
                   "bad-device: '" + std::string(wrong) +
                       "' is not a device; valid are auto, auto:host, cuda:N, host, emulator and "
                       "emulator:NAME"));
  }
  const auto error = error_of([&] { static_cast<void>(Device::open("cuda:0", settings)); });
  REQUIRE(error);
  CHECK(error->code == "no-driver");
  CHECK(contains(error->message, "the device 'emulator' needs none"));
  Settings wrong = settings;
  wrong.emulated_ptx = "nine";
  CHECK(refusal([&] { static_cast<void>(Device::open("emulator", wrong)); }) ==
        "bad-setting: PTXGEN_EMULATED_PTX is 'nine'; expected a PTX version, for example 9.0");
  CHECK(Device::list(settings).size() == 2);
}

TEST_CASE("the thread's current context is left as it was found") {
  ScriptedDriver driver;
  driver.memory_free = 1 << 16;
  auto* const foreign = reinterpret_cast<driver::CUcontext>(0x99);
  driver.current = {foreign};
  {
    const Context context(Device::open(driver.table, 0));
    Buffer<u32> buffer(context, 16);
    const Stream stream(context);
    stream.synchronize();
    static_cast<void>(context.memory());
    CHECK(driver.current == std::vector<driver::CUcontext>{foreign});
    // Current already: nothing to push.
    driver.current.push_back(context.handle());
    driver.table.ctx_push_current = [](driver::CUcontext) {
      return driver::CUDA_ERROR_INVALID_VALUE;
    };
    stream.synchronize();
    CHECK(driver.current.size() == 2);
  }
  CHECK(driver.contexts == 0);
  CHECK(driver.memories == 0);
  CHECK(driver.streams == 0);
}

TEST_CASE("memory that is not there") {
  ScriptedDriver driver;
  driver.memory_free = 1000;
  const Context context(Device::open(driver.table, 0));
  CHECK(refusal([&] { const Buffer<f32> buffer(context, 1000); }) ==
        "out-of-memory: cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory, while "
        "allocating 4000 bytes; 1000 of 1048576 bytes are free");
}

TEST_CASE("a fault: its first report, and every later one") {
  CaughtLog log;
  ScriptedDriver driver;
  driver.memory_free = 1 << 16;
  {
    const Context context(Device::open(driver.table, 0));
    Buffer<u32> buffer(context, 4);
    const Stream stream(context);
    driver.synchronize_result = driver::CUDA_ERROR_ILLEGAL_ADDRESS;
    driver.logged = "out-of-bounds in kernel f";
    CHECK(!context.poisoned());
    const auto first = error_of([&] { stream.synchronize(); });
    REQUIRE(first);
    CHECK(first->stage == Stage::Launch);
    CHECK(first->code == "device-fault");
    CHECK(first->driver_status == 700);
    CHECK(first->log == "out-of-bounds in kernel f\n");
    CHECK(contains(first->message, "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
    CHECK(context.poisoned());
    driver.synchronize_result = driver::CUDA_SUCCESS;
    const std::vector<std::uint32_t> data(4);
    for (const auto& later :
         {error_of([&] { context.synchronize(); }), error_of([&] { buffer.write(data); }),
          error_of([&] { const Event event(context); }),
          error_of([&] { static_cast<void>(Module::load(context, kernel_text())); })}) {
      REQUIRE(later);
      CHECK(later->code == "context-lost");
      CHECK(later->driver_status == 700);
      CHECK(later->message ==
            "the context was lost: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700): an "
            "illegal memory access was encountered; destroy everything made from it, call "
            "Context::reset and make a new context");
      CHECK(later->log == first->log);
    }
  }
  CHECK(driver.memories == 0);
  CHECK(driver.contexts == 0);
  // A new context is a new start.
  const Context context(Device::open(driver.table, 0));
  context.synchronize();
  CHECK(log.take().empty());
}

TEST_CASE("a failed release is retried and logged once") {
  CaughtLog log;
  ScriptedDriver driver;
  driver.memory_free = 1 << 16;
  const Context context(Device::open(driver.table, 0));
  {
    const Buffer<u32> buffer(context, 4);
    driver.table.mem_free = [](driver::CUdeviceptr) { return driver::CUDA_ERROR_INVALID_VALUE; };
  }
  const auto lines = log.take();
  REQUIRE(lines.size() == 1);
  CHECK(lines[0] ==
        "cuMemFree_v2: CUDA_ERROR_INVALID_VALUE (1): invalid argument in a clean-up; the "
        "retry failed: cuMemFree_v2: CUDA_ERROR_INVALID_VALUE (1): invalid argument");
}

TEST_CASE("nothing is unloaded or freed while a capture runs") {
  ScriptedDriver driver;
  driver.memory_free = 1 << 16;
  const Context context(Device::open(driver.table, 0));
  const Stream stream(context);
  std::optional<Graph> graph;
  {
    std::optional<Module> module = Module::load(context, kernel_text());
    const std::optional<Module> other = Module::load(context, kernel_text());
    Buffer<u32> buffer(context, 4);
    const Function function = module->function("f");
    stream.begin_capture();
    const std::array<std::byte, 8> block{};
    function.launch(stream, {}, block);
    module.reset();
  }
  CHECK(driver.modules == 2);
  CHECK(driver.memories == 1);
  graph = stream.end_capture();
  CHECK(driver.modules == 1);  // the graph's
  CHECK(driver.memories == 0);
  graph.reset();
  CHECK(driver.modules == 0);
  CHECK(driver.graphs == 0);
}

TEST_CASE("a capture that nothing ends goes with its stream") {
  ScriptedDriver driver;
  const Context context(Device::open(driver.table, 0));
  {
    const Stream stream(context);
    stream.begin_capture();
    CHECK(refusal([&] { stream.begin_capture(); }) ==
          "capture: the stream is already being captured");
  }
  CHECK(!driver.capturing);
  CHECK(driver.graphs == 0);
}
