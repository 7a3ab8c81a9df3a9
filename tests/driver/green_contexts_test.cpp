// tests/driver/green_contexts_test.cpp - resources, green contexts, ids of the emulated driver
#include <catch2/catch.hpp>
#include <cstring>

#include "driver_fixture.hpp"

using namespace ptxgen::test;  // NOLINT

namespace {

/// A green context of device 0 with one group of so many multiprocessors or more.
struct GreenFixture : DriverFixture {
  CUdevResource all{};
  CUdevResource part{};
  CUgreenCtx green = nullptr;
  CUcontext as_context = nullptr;

  explicit GreenFixture(unsigned min_count = 10) {
    unsigned groups = 1;
    CUdevResourceDesc desc = nullptr;
    PTXGEN_OK(driver.device_get_dev_resource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    PTXGEN_OK(driver.dev_sm_resource_split_by_count(&part, &groups, &all, nullptr, 0, min_count));
    PTXGEN_OK(driver.dev_resource_generate_desc(&desc, &part, 1));
    PTXGEN_OK(driver.green_ctx_create(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    PTXGEN_OK(driver.ctx_from_green_ctx(&as_context, green));
  }
  ~GreenFixture() {
    if (green != nullptr) static_cast<void>(driver.green_ctx_destroy(green));
  }
};

}  // namespace

TEST_CASE("the multiprocessors of a device are split into equal groups and a rest") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  CUdevResource all{};
  PTXGEN_OK(driver.device_get_dev_resource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  int count = 0;
  PTXGEN_OK(driver.device_get_attribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  CHECK(all.sm.smCount == static_cast<unsigned>(count));
  const unsigned step = all.sm.smCoscheduledAlignment;
  CHECK(all.sm.minSmPartitionSize % step == 0);
  unsigned possible = 0;
  PTXGEN_OK(driver.dev_sm_resource_split_by_count(nullptr, &possible, &all, nullptr, 0, 1));
  CHECK(possible == all.sm.smCount / all.sm.minSmPartitionSize);
  CUdevResource groups[2];
  CUdevResource rest{};
  unsigned created = 2;
  PTXGEN_OK(driver.dev_sm_resource_split_by_count(groups, &created, &all, &rest, 0,
                                                  all.sm.minSmPartitionSize + 1));
  CHECK(created == 2);
  CHECK(groups[0].sm.smCount == all.sm.minSmPartitionSize + step);
  CHECK(groups[1].sm.smCount == groups[0].sm.smCount);
  CHECK(rest.sm.smCount == all.sm.smCount - 2 * groups[0].sm.smCount);
  // Each multiprocessor for itself.
  created = 1;
  PTXGEN_OK(driver.dev_sm_resource_split_by_count(
      groups, &created, &all, nullptr, CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING, 2));
  CHECK(groups[0].sm.smCount == 2);
}

TEST_CASE("splits that are not possible are refused") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  CUdevResource all{};
  CUdevResource group{};
  unsigned created = 1;
  PTXGEN_CHECK_RESULT(driver.device_get_dev_resource(0, &all, CU_DEV_RESOURCE_TYPE_INVALID),
                      CUDA_ERROR_INVALID_RESOURCE_TYPE);
  PTXGEN_CHECK_RESULT(driver.device_get_dev_resource(99, &all, CU_DEV_RESOURCE_TYPE_SM),
                      CUDA_ERROR_INVALID_DEVICE);
  PTXGEN_CHECK_RESULT(driver.dev_sm_resource_split_by_count(&group, &created, &all, nullptr, 0, 1),
                      CUDA_ERROR_INVALID_RESOURCE_TYPE);
  PTXGEN_OK(driver.device_get_dev_resource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  PTXGEN_CHECK_RESULT(
      driver.dev_sm_resource_split_by_count(&group, &created, &all, nullptr, 0, all.sm.smCount + 1),
      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.dev_sm_resource_split_by_count(&group, &created, &all, nullptr, 4, 1),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.dev_sm_resource_split_by_count(&group, &created, &all, nullptr, 0, 1));
  PTXGEN_CHECK_RESULT(driver.dev_sm_resource_split_by_count(&all, &created, &group, nullptr, 0, 1),
                      CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  CHECK_THAT(fixture.log, Catch::Contains("the input is a part of another split"));
  // Parts of two splits.
  CUdevResource parts[2];
  CUdevResourceDesc desc = nullptr;
  parts[0] = group;
  PTXGEN_OK(driver.device_get_dev_resource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  PTXGEN_OK(driver.dev_sm_resource_split_by_count(&parts[1], &created, &all, nullptr, 0, 1));
  PTXGEN_CHECK_RESULT(driver.dev_resource_generate_desc(&desc, parts, 2),
                      CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  PTXGEN_OK(driver.dev_resource_generate_desc(&desc, parts, 1));
  CUgreenCtx green = nullptr;
  PTXGEN_CHECK_RESULT(driver.green_ctx_create(&green, desc, 0, 0), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.green_ctx_destroy(nullptr), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("a green context is current as a context of its own, with its part of the device") {
  GreenFixture fixture;
  const Table& driver = fixture.driver;
  CUdevResource found{};
  PTXGEN_OK(driver.green_ctx_get_dev_resource(fixture.green, &found, CU_DEV_RESOURCE_TYPE_SM));
  CHECK(found.sm.smCount == fixture.part.sm.smCount);
  PTXGEN_OK(driver.ctx_get_dev_resource(fixture.as_context, &found, CU_DEV_RESOURCE_TYPE_SM));
  CHECK(found.sm.smCount == fixture.part.sm.smCount);
  PTXGEN_OK(driver.ctx_get_dev_resource(fixture.context, &found, CU_DEV_RESOURCE_TYPE_SM));
  CHECK(found.sm.smCount == fixture.all.sm.smCount);
  PTXGEN_OK(driver.ctx_push_current(fixture.as_context));
  CUcontext current = nullptr;
  PTXGEN_OK(driver.ctx_get_current(&current));
  CHECK(current == fixture.as_context);
  CUgreenCtx green = nullptr;
  PTXGEN_OK(driver.stream_get_green_ctx(nullptr, &green));
  CHECK(green == fixture.green);
  CUdeviceptr memory = 0;
  PTXGEN_OK(driver.mem_alloc(&memory, 64));
  PTXGEN_OK(driver.memset_d8(memory, 7, 64));
  CHECK(fixture.bytes_of(memory, 64) == std::vector<unsigned char>(64, 7));
  PTXGEN_OK(driver.mem_free(memory));
  CUdevice device = -1;
  PTXGEN_OK(driver.ctx_get_device_v2(&device, fixture.as_context));
  CHECK(device == 0);
  PTXGEN_OK(driver.ctx_synchronize_v2(fixture.as_context));
  PTXGEN_OK(driver.ctx_pop_current(&current));
  CHECK(current == fixture.as_context);
  PTXGEN_OK(driver.stream_get_green_ctx(nullptr, &green));
  CHECK(green == nullptr);
  PTXGEN_CHECK_RESULT(driver.ctx_destroy(fixture.as_context), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("streams of a green context name it, and end with it") {
  GreenFixture fixture;
  const Table& driver = fixture.driver;
  CUstream stream = nullptr;
  PTXGEN_CHECK_RESULT(driver.green_ctx_stream_create(&stream, fixture.green, 0, 0),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.green_ctx_stream_create(&stream, fixture.green, CU_STREAM_NON_BLOCKING, 0));
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
  PTXGEN_OK(driver.stream_get_green_ctx(stream, &green));
  CHECK(green == fixture.green);
  PTXGEN_OK(driver.stream_get_ctx(stream, &context));
  CHECK(context == fixture.as_context);
  PTXGEN_OK(driver.stream_get_ctx_v2(stream, &context, &green));
  CHECK(context != fixture.as_context);
  CHECK(green == fixture.green);
  CUcontext primary = nullptr;
  PTXGEN_OK(driver.device_primary_ctx_retain(&primary, 0));
  CHECK(context == primary);
  PTXGEN_OK(driver.stream_synchronize(stream));
  PTXGEN_OK(driver.green_ctx_destroy(fixture.green));
  PTXGEN_CHECK_RESULT(driver.stream_synchronize(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  PTXGEN_CHECK_RESULT(driver.ctx_push_current(fixture.as_context), CUDA_ERROR_INVALID_CONTEXT);
  PTXGEN_CHECK_RESULT(driver.green_ctx_destroy(fixture.green), CUDA_ERROR_INVALID_CONTEXT);
  fixture.green = nullptr;
  PTXGEN_OK(driver.device_primary_ctx_release(0));
}

TEST_CASE("a context whose green context is gone is no longer current") {
  GreenFixture fixture;
  const Table& driver = fixture.driver;
  PTXGEN_OK(driver.ctx_push_current(fixture.as_context));
  PTXGEN_OK(driver.green_ctx_destroy(fixture.green));
  fixture.green = nullptr;
  CUdevice device = 0;
  PTXGEN_CHECK_RESULT(driver.ctx_get_device(&device), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  PTXGEN_OK(driver.ctx_pop_current(nullptr));
  PTXGEN_OK(driver.ctx_get_device(&device));
}

TEST_CASE("a green context retains the primary context until it is destroyed") {
  GreenFixture fixture;
  const Table& driver = fixture.driver;
  unsigned flags = 0;
  int active = 0;
  PTXGEN_OK(driver.device_primary_ctx_get_state(0, &flags, &active));
  CHECK(active == 1);
  PTXGEN_OK(driver.green_ctx_destroy(fixture.green));
  fixture.green = nullptr;
  PTXGEN_OK(driver.device_primary_ctx_get_state(0, &flags, &active));
  CHECK(active == 0);
}

TEST_CASE("events of contexts cover all their streams") {
  GreenFixture fixture;
  const Table& driver = fixture.driver;
  CUevent event = fixture.make_event();
  PTXGEN_OK(driver.ctx_record_event(fixture.context, event));
  PTXGEN_OK(driver.event_synchronize(event));
  PTXGEN_OK(driver.ctx_wait_event(fixture.context, event));
  PTXGEN_OK(driver.green_ctx_wait_event(fixture.green, event));
  // The event is of another context.
  PTXGEN_CHECK_RESULT(driver.green_ctx_record_event(fixture.green, event),
                      CUDA_ERROR_INVALID_HANDLE);
  PTXGEN_CHECK_RESULT(driver.ctx_record_event(nullptr, event), CUDA_ERROR_INVALID_CONTEXT);
  CUstream stream = fixture.make_stream();
  PTXGEN_OK(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  PTXGEN_CHECK_RESULT(driver.ctx_record_event(fixture.context, event),
                      CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph graph = nullptr;
  PTXGEN_CHECK_RESULT(driver.stream_end_capture(stream, &graph),
                      CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  PTXGEN_OK(driver.event_destroy(event));
}

TEST_CASE("contexts and streams have ids that no other has") {
  GreenFixture fixture;
  const Table& driver = fixture.driver;
  unsigned long long ids[5] = {};
  PTXGEN_OK(driver.ctx_get_id(nullptr, &ids[0]));
  PTXGEN_OK(driver.ctx_get_id(fixture.as_context, &ids[1]));
  CUstream stream = fixture.make_stream();
  PTXGEN_OK(driver.stream_get_id(stream, &ids[2]));
  PTXGEN_OK(driver.stream_get_id(nullptr, &ids[3]));
  PTXGEN_OK(driver.green_ctx_get_id(fixture.green, &ids[4]));
  CHECK(ids[1] == ids[4]);
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < i; ++k) CHECK(ids[i] != ids[k]);
  }
  unsigned long long again = 0;
  PTXGEN_OK(driver.ctx_get_id(fixture.context, &again));
  CHECK(again == ids[0]);
  CUdevice device = -1;
  PTXGEN_OK(driver.stream_get_device(stream, &device));
  CHECK(device == 0);
  PTXGEN_CHECK_RESULT(driver.green_ctx_get_id(nullptr, &again), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("names of kernels need a kernel") {
  DriverFixture fixture;
  const char* name = nullptr;
  PTXGEN_CHECK_RESULT(fixture.driver.func_get_name(&name, nullptr), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(fixture.driver.kernel_get_name(&name, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("settings of core dumps are kept, for all contexts and for one") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  std::size_t size = 0;
  PTXGEN_OK(driver.coredump_get_attribute_global(CU_COREDUMP_FILE, nullptr, &size));
  CHECK(size == 1024);
  char text[1024];
  PTXGEN_OK(driver.coredump_get_attribute_global(CU_COREDUMP_FILE, text, &size));
  CHECK_THAT(std::string(text), Catch::StartsWith("core.cuda."));
  std::string name = "dump";
  std::size_t bytes = name.size() + 1;
  PTXGEN_OK(driver.coredump_set_attribute(CU_COREDUMP_FILE, name.data(), &bytes));
  PTXGEN_OK(driver.coredump_get_attribute(CU_COREDUMP_FILE, text, &size));
  CHECK(std::string(text) == "dump");
  PTXGEN_OK(driver.coredump_get_attribute_global(CU_COREDUMP_FILE, text, &size));
  CHECK(std::string(text) != "dump");
  std::size_t small = 4;
  PTXGEN_CHECK_RESULT(driver.coredump_get_attribute(CU_COREDUMP_FILE, text, &small),
                      CUDA_ERROR_INVALID_VALUE);
  // The old settings are parts of the flags.
  int flags = CU_COREDUMP_LIGHTWEIGHT_FLAGS | CU_COREDUMP_SKIP_ABORT;
  std::size_t four = sizeof flags;
  PTXGEN_OK(driver.coredump_set_attribute(CU_COREDUMP_GENERATION_FLAGS, &flags, &four));
  bool on = false;
  std::size_t one = sizeof on;
  PTXGEN_OK(driver.coredump_get_attribute(CU_COREDUMP_LIGHTWEIGHT, &on, &one));
  CHECK(on);
  PTXGEN_OK(driver.coredump_get_attribute(CU_COREDUMP_TRIGGER_HOST, &on, &one));
  CHECK_FALSE(on);
  PTXGEN_CHECK_RESULT(driver.coredump_set_attribute(CU_COREDUMP_PIPE, name.data(), &bytes),
                      CUDA_ERROR_NOT_PERMITTED);
  CHECK_THAT(fixture.log, Catch::Contains("use cuCoredumpSetAttributeGlobal"));
  fixture.log.clear();
  on = true;
  PTXGEN_OK(driver.coredump_set_attribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &one));
  PTXGEN_OK(driver.coredump_set_attribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &one));
  CHECK_THAT(fixture.log, Catch::Contains("keeps the settings of core dumps and writes none"));
  CHECK(fixture.log.find("core dumps") == fixture.log.rfind("core dumps"));
  PTXGEN_CHECK_RESULT(
      driver.coredump_get_attribute(static_cast<CUcoredumpSettings>(99), text, &size),
      CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("errors have the driver's words, unknown ones none") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const char* text = nullptr;
  PTXGEN_OK(driver.get_error_string(CUDA_ERROR_INVALID_DEVICE, &text));
  CHECK(std::string(text) == "invalid device ordinal");
  PTXGEN_CHECK_RESULT(driver.get_error_string(static_cast<CUresult>(12345), &text),
                      CUDA_ERROR_INVALID_VALUE);
  CHECK(text == nullptr);
  CUprocessState state{};
  PTXGEN_CHECK_RESULT(driver.checkpoint_process_get_state(-1, &state), CUDA_ERROR_INVALID_VALUE);
}
