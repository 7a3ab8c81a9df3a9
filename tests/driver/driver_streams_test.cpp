// tests/driver/driver_streams_test.cpp - streams, events and host functions, emulated
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "driver_fixture.hpp"

using namespace ptxgen::test;  // NOLINT

TEST_CASE("asynchronous calls return at once, in order") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const CUstream stream = fixture.make_stream();
  const CUdeviceptr a = fixture.allocate(100);
  void* memory = nullptr;
  PTXGEN_OK(driver.mem_host_alloc(&memory, 100, 0));
  auto* const pinned = static_cast<unsigned char*>(memory);
  std::memset(pinned, 0, 100);
  PTXGEN_OK(driver.stream_query(stream));
  Gate gate(driver, stream);
  PTXGEN_OK(gate.result);
  std::vector<unsigned char> host(100, 1);
  PTXGEN_OK(driver.memcpy_to_device_async(a, host.data(), 100, stream));
  std::fill(host.begin(), host.end(), 2);  // pageable: was taken at the call
  PTXGEN_OK(driver.memset_d8_async(a, 3, 50, stream));
  PTXGEN_OK(driver.memcpy_to_host_async(pinned, a, 100, stream));
  PTXGEN_CHECK_RESULT(driver.stream_query(stream), CUDA_ERROR_NOT_READY);
  gate.open();
  PTXGEN_OK(driver.stream_synchronize(stream));
  PTXGEN_OK(driver.stream_query(stream));
  CHECK(pinned[0] == 3);
  CHECK(pinned[49] == 3);
  CHECK(pinned[50] == 1);

  // Pinned memory is read when it is the copy's turn.
  Gate second(driver, stream);
  PTXGEN_OK(driver.memcpy_to_device_async(a, pinned, 100, stream));
  std::memset(pinned, 9, 100);
  second.open();
  PTXGEN_OK(driver.stream_synchronize(stream));
  CHECK(fixture.bytes_of(a, 1)[0] == 9);
}

TEST_CASE("a copy to pageable memory has ended when the call returns") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const CUstream stream = fixture.make_stream();
  const CUdeviceptr a = fixture.allocate(64);
  PTXGEN_OK(driver.memset_d8_async(a, 7, 64, stream));
  std::vector<unsigned char> host(64, 0);
  PTXGEN_OK(driver.memcpy_to_host_async(host.data(), a, 64, stream));
  CHECK(host == std::vector<unsigned char>(64, 7));
}

TEST_CASE("the legacy stream waits for blocking streams only") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const CUstream blocking = fixture.make_stream(CU_STREAM_DEFAULT);
  Gate gate(driver, blocking);
  PTXGEN_CHECK_RESULT(driver.stream_query(nullptr), CUDA_ERROR_NOT_READY);
  gate.open();
  PTXGEN_OK(driver.stream_synchronize(nullptr));
  PTXGEN_OK(driver.stream_query(blocking));
  const CUstream free_stream = fixture.make_stream();
  Gate other(driver, free_stream);
  PTXGEN_OK(driver.stream_query(nullptr));
  PTXGEN_CHECK_RESULT(driver.stream_query(free_stream), CUDA_ERROR_NOT_READY);
  other.open();
  PTXGEN_OK(driver.ctx_synchronize());
}

TEST_CASE("streams tell what they were made with") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  int min = 0;
  int greatest = 0;
  PTXGEN_OK(driver.ctx_get_stream_priority_range(&min, &greatest));
  CHECK(greatest < min);
  CUstream stream = nullptr;
  PTXGEN_OK(driver.stream_create_with_priority(&stream, CU_STREAM_NON_BLOCKING, greatest - 10));
  int priority = 1;
  PTXGEN_OK(driver.stream_get_priority(stream, &priority));
  CHECK(priority == greatest);
  unsigned flags = 0;
  PTXGEN_OK(driver.stream_get_flags(stream, &flags));
  CHECK(flags == CU_STREAM_NON_BLOCKING);
  CUcontext context = nullptr;
  PTXGEN_OK(driver.stream_get_ctx(stream, &context));
  CHECK(context == fixture.context);
  PTXGEN_CHECK_RESULT(driver.stream_create(&stream, 2), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.stream_destroy(stream));
  PTXGEN_CHECK_RESULT(driver.stream_destroy(stream), CUDA_ERROR_INVALID_HANDLE);
  PTXGEN_CHECK_RESULT(driver.stream_query(stream), CUDA_ERROR_INVALID_HANDLE);
  PTXGEN_CHECK_RESULT(driver.stream_destroy(nullptr), CUDA_ERROR_INVALID_HANDLE);
  const auto per_thread = reinterpret_cast<CUstream>(kStreamPerThread);
  const CUdeviceptr a = fixture.allocate(4);
  PTXGEN_OK(driver.memset_d8_async(a, 1, 4, per_thread));
  PTXGEN_OK(driver.stream_synchronize(per_thread));
}

TEST_CASE("events carry host time") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const CUstream stream = fixture.make_stream();
  const CUevent start = fixture.make_event();
  const CUevent end = fixture.make_event();
  float milliseconds = -1;
  PTXGEN_OK(driver.event_query(start));  // never recorded
  PTXGEN_OK(driver.event_synchronize(start));
  PTXGEN_CHECK_RESULT(driver.event_elapsed_time(&milliseconds, start, end),
                      CUDA_ERROR_INVALID_HANDLE);
  PTXGEN_OK(driver.event_record(start, stream));
  PTXGEN_OK(driver.event_synchronize(start));
  Gate gate(driver, stream);
  PTXGEN_OK(driver.event_record(end, stream));
  PTXGEN_CHECK_RESULT(driver.event_query(end), CUDA_ERROR_NOT_READY);
  PTXGEN_CHECK_RESULT(driver.event_elapsed_time(&milliseconds, start, end), CUDA_ERROR_NOT_READY);
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  gate.open();
  PTXGEN_OK(driver.event_synchronize(end));
  PTXGEN_OK(driver.event_query(end));
  PTXGEN_OK(driver.event_elapsed_time(&milliseconds, start, end));
  CHECK(milliseconds >= 3.0f);
  PTXGEN_OK(driver.event_elapsed_time_v2(&milliseconds, end, start));
  CHECK(milliseconds <= -3.0f);
  const CUevent untimed = fixture.make_event(CU_EVENT_DISABLE_TIMING);
  PTXGEN_OK(driver.event_record(untimed, stream));
  PTXGEN_OK(driver.event_synchronize(untimed));
  PTXGEN_CHECK_RESULT(driver.event_elapsed_time(&milliseconds, start, untimed),
                      CUDA_ERROR_INVALID_HANDLE);
  CUevent never = nullptr;
  PTXGEN_CHECK_RESULT(driver.event_create(&never, 8), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.event_create(&never, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.event_destroy(untimed));
  PTXGEN_CHECK_RESULT(driver.event_query(untimed), CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("an event may be destroyed and its stream with it while work is queued") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const CUstream stream = fixture.make_stream();
  const CUevent event = fixture.make_event();
  const CUdeviceptr a = fixture.allocate(4);
  Gate gate(driver, stream);
  PTXGEN_OK(driver.event_record(event, stream));
  PTXGEN_OK(driver.memset_d32_async(a, 5, 1, stream));
  PTXGEN_OK(driver.event_destroy(event));
  PTXGEN_OK(driver.stream_destroy(stream));
  gate.open();
  PTXGEN_OK(driver.ctx_synchronize());
  CHECK(fixture.bytes_of(a, 4)[0] == 5);
}

TEST_CASE("a stream waits for an event of another context") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const CUstream here = fixture.make_stream();
  const CUevent event = fixture.make_event();
  Gate gate(driver, here);
  PTXGEN_OK(driver.event_record(event, here));
  CUcontext second = nullptr;
  PTXGEN_OK(driver.ctx_create_v2(&second, 0, 0));
  const CUstream there = fixture.make_stream();
  PTXGEN_CHECK_RESULT(driver.event_record(event, there), CUDA_ERROR_INVALID_HANDLE);
  PTXGEN_OK(driver.stream_wait_event(there, event, 0));
  PTXGEN_CHECK_RESULT(driver.stream_query(there), CUDA_ERROR_NOT_READY);
  gate.open();
  PTXGEN_OK(driver.stream_synchronize(there));
  PTXGEN_OK(driver.event_query(event));
  PTXGEN_OK(driver.ctx_destroy(second));
}

TEST_CASE("host functions run in order and may not call the driver") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const CUstream stream = fixture.make_stream();
  struct Seen {
    const Table* driver;
    CUstream stream;
    CUresult inside = CUDA_SUCCESS;
    CUresult status = CUDA_ERROR_UNKNOWN;
    bool same_stream = false;
  } seen{&driver, stream};
  PTXGEN_OK(driver.launch_host_func(
      stream,
      [](void* user) {
        auto& s = *static_cast<Seen*>(user);
        CUdeviceptr address = 0;
        s.inside = s.driver->mem_alloc(&address, 4);
      },
      &seen));
  PTXGEN_OK(driver.stream_add_callback(
      stream,
      [](CUstream called, CUresult status, void* user) {
        auto& s = *static_cast<Seen*>(user);
        s.status = status;
        s.same_stream = called == s.stream;
      },
      &seen, 0));
  PTXGEN_OK(driver.stream_synchronize(stream));
  PTXGEN_CHECK_RESULT(seen.inside, CUDA_ERROR_NOT_PERMITTED);
  PTXGEN_CHECK_RESULT(seen.status, CUDA_SUCCESS);
  CHECK(seen.same_stream);
  PTXGEN_CHECK_RESULT(driver.launch_host_func(stream, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("memory is allocated and freed in stream order") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const CUstream stream = fixture.make_stream();
  std::size_t before = 0;
  std::size_t now = 0;
  std::size_t total = 0;
  PTXGEN_OK(driver.mem_get_info(&before, &total));
  CUdeviceptr address = 0;
  PTXGEN_OK(driver.mem_alloc_async(&address, 4096, stream));
  Gate gate(driver, stream);
  PTXGEN_OK(driver.memset_d8_async(address, 1, 4096, stream));
  PTXGEN_OK(driver.mem_free_async(address, stream));
  PTXGEN_CHECK_RESULT(driver.memset_d8_async(address, 1, 4096, stream), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.mem_free_async(address, stream), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.mem_get_info(&now, &total));
  CHECK(before - now == 4096);
  gate.open();
  PTXGEN_OK(driver.stream_synchronize(stream));
  PTXGEN_OK(driver.mem_get_info(&now, &total));
  CHECK(now == before);
}

TEST_CASE("freeing waits for what is queued") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const CUstream stream = fixture.make_stream();
  const CUdeviceptr a = fixture.allocate(256);
  std::atomic<bool> ran{false};
  Gate gate(driver, stream);
  PTXGEN_OK(driver.memset_d8_async(a, 1, 256, stream));
  PTXGEN_OK(driver.launch_host_func(
      stream, [](void* user) { *static_cast<std::atomic<bool>*>(user) = true; }, &ran));
  std::thread opener([&] { gate.open(); });
  PTXGEN_OK(driver.mem_free(a));
  CHECK(ran);
  opener.join();
}

TEST_CASE("a context is destroyed with work queued and threads waiting") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  CUcontext second = nullptr;
  PTXGEN_OK(driver.ctx_create_v2(&second, 0, 0));
  const CUstream stream = fixture.make_stream();
  const CUevent event = fixture.make_event();
  const CUdeviceptr a = fixture.allocate(256);
  Gate gate(driver, stream);
  for (int i = 0; i < 100; ++i) PTXGEN_OK(driver.memset_d8_async(a, 1, 256, stream));
  PTXGEN_OK(driver.event_record(event, stream));
  std::promise<void> waiting;
  CUresult waited = CUDA_ERROR_UNKNOWN;
  std::thread waiter([&] {
    waiting.set_value();
    waited = driver.event_synchronize(event);
  });
  waiting.get_future().wait();
  std::thread opener([&] { gate.open(); });
  PTXGEN_OK(driver.ctx_destroy(second));
  waiter.join();
  opener.join();
  CHECK((waited == CUDA_SUCCESS || waited == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
         waited == CUDA_ERROR_INVALID_HANDLE));
  PTXGEN_CHECK_RESULT(driver.stream_synchronize(stream), CUDA_ERROR_INVALID_HANDLE);
  PTXGEN_CHECK_RESULT(driver.event_query(event), CUDA_ERROR_INVALID_HANDLE);
  PTXGEN_OK(driver.ctx_synchronize());
}

TEST_CASE("threads use streams and events of one context at the same time") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const CUstream shared = fixture.make_stream();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const auto ok = [&](CUresult result) {
        if (result != CUDA_SUCCESS) ++wrong;
      };
      ok(driver.ctx_set_current(fixture.context));
      CUstream own = nullptr;
      ok(driver.stream_create(&own, CU_STREAM_NON_BLOCKING));
      CUdeviceptr memory = 0;
      ok(driver.mem_alloc_async(&memory, 512, own));
      void* host = nullptr;
      ok(driver.mem_host_alloc(&host, 512, 0));
      for (int i = 0; i < 40; ++i) {
        CUevent event = nullptr;
        ok(driver.event_create(&event, 0));
        ok(driver.memset_d32_async(memory, static_cast<unsigned>(t * 1000 + i), 128, own));
        ok(driver.event_record(event, own));
        ok(driver.stream_wait_event(shared, event, 0));
        ok(driver.memcpy_to_host_async(host, memory, 512, shared));
        ok(driver.event_record(event, shared));
        const CUresult query = driver.event_query(event);
        if (query != CUDA_SUCCESS && query != CUDA_ERROR_NOT_READY) ++wrong;
        ok(driver.event_synchronize(event));
        if (*static_cast<unsigned*>(host) != static_cast<unsigned>(t * 1000 + i)) ++wrong;
        ok(driver.event_destroy(event));
      }
      ok(driver.mem_free_async(memory, own));
      ok(driver.stream_destroy(own));
      ok(driver.mem_free_host(host));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}
