// tests/driver/driver_capture_test.cpp - stream capture in the emulated driver
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "driver_fixture.hpp"

using namespace ptxgen::test;  // NOLINT

namespace {

CUstreamCaptureStatus status_of(DriverFixture& fixture, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  PTXGEN_OK(fixture.driver.stream_is_capturing(stream, &status));
  return status;
}

std::size_t nodes_in(DriverFixture& fixture, CUgraph graph) {
  std::size_t count = 0;
  PTXGEN_OK(fixture.driver.graph_get_nodes(graph, nullptr, &count));
  return count;
}

/// Ends a capture that must have become invalid.
void end_invalid(DriverFixture& fixture, CUstream stream) {
  CHECK(status_of(fixture, stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CUgraph graph = reinterpret_cast<CUgraph>(1);
  PTXGEN_CHECK_RESULT(fixture.driver.stream_end_capture(stream, &graph),
                      CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(graph == nullptr);
  CHECK(status_of(fixture, stream) == CU_STREAM_CAPTURE_STATUS_NONE);
}

}  // namespace

TEST_CASE("a capture stores and does not run, its graph runs") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const CUstream stream = fixture.make_stream();
  const CUdeviceptr a = fixture.allocate(64);
  PTXGEN_OK(driver.memset_d8(a, 0, 64));
  std::vector<unsigned char> host(32, 1);
  PTXGEN_OK(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(status_of(fixture, stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  PTXGEN_CHECK_RESULT(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
                      CUDA_ERROR_ILLEGAL_STATE);
  PTXGEN_OK(driver.memset_d8_async(a, 7, 64, stream));
  PTXGEN_OK(driver.memcpy_to_device_async(a, host.data(), 32, stream));
  CUgraph graph = nullptr;
  PTXGEN_OK(driver.stream_end_capture(stream, &graph));
  REQUIRE(graph != nullptr);
  CHECK(nodes_in(fixture, graph) == 2);
  CHECK(fixture.bytes_of(a, 64) == std::vector<unsigned char>(64, 0));
  CUgraphExec executable = nullptr;
  PTXGEN_OK(driver.graph_instantiate_with_flags(&executable, graph, 0));
  PTXGEN_OK(driver.graph_destroy(graph));
  std::fill(host.begin(), host.end(), 2);  // read when the graph runs
  for (int i = 0; i < 2; ++i) {
    PTXGEN_OK(driver.graph_launch(executable, stream));
    PTXGEN_OK(driver.stream_synchronize(stream));
    std::vector<unsigned char> expected(64, 7);
    std::fill_n(expected.begin(), 32, 2);
    CHECK(fixture.bytes_of(a, 64) == expected);
    PTXGEN_OK(driver.memset_d8(a, 0, 64));
  }
  PTXGEN_OK(driver.graph_exec_destroy(executable));
  PTXGEN_CHECK_RESULT(driver.graph_launch(executable, stream), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.stream_end_capture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
}

TEST_CASE("events draw other streams into a capture, and join them") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const CUstream origin = fixture.make_stream();
  const CUstream side = fixture.make_stream();
  const CUevent fork = fixture.make_event();
  const CUevent join = fixture.make_event();
  const CUdeviceptr a = fixture.allocate(64);
  PTXGEN_OK(driver.stream_begin_capture(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
  PTXGEN_OK(driver.memset_d8_async(a, 1, 64, origin));
  PTXGEN_OK(driver.event_record(fork, origin));
  PTXGEN_CHECK_RESULT(driver.event_query(fork), CUDA_ERROR_CAPTURED_EVENT);
  PTXGEN_CHECK_RESULT(driver.event_synchronize(fork), CUDA_ERROR_CAPTURED_EVENT);
  PTXGEN_OK(driver.stream_wait_event(side, fork, 0));
  CHECK(status_of(fixture, side) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  PTXGEN_OK(driver.memset_d8_async(a, 2, 32, side));
  PTXGEN_OK(driver.memset_d8_async(a + 32, 3, 32, origin));
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  std::uint64_t number = 0;
  std::uint64_t side_number = 1;
  CUgraph graph = nullptr;
  const CUgraphNode* tail = nullptr;
  std::size_t count = 0;
  PTXGEN_OK(driver.stream_get_capture_info_v2(origin, &status, &number, &graph, &tail, &count));
  CHECK(count == 1);
  PTXGEN_OK(driver.stream_get_capture_info_v3(side, &status, &side_number, nullptr, nullptr,
                                              nullptr, nullptr));
  CHECK(number == side_number);
  CHECK(nodes_in(fixture, graph) == 3);
  PTXGEN_CHECK_RESULT(driver.graph_destroy(graph), CUDA_ERROR_ILLEGAL_STATE);
  PTXGEN_OK(driver.event_record(join, side));
  PTXGEN_OK(driver.stream_wait_event(origin, join, 0));
  CUgraph ended = nullptr;
  PTXGEN_OK(driver.stream_end_capture(origin, &ended));
  CHECK(ended == graph);
  CHECK(status_of(fixture, side) == CU_STREAM_CAPTURE_STATUS_NONE);
  std::size_t edges = 0;
  PTXGEN_OK(driver.graph_get_edges(graph, nullptr, nullptr, &edges));
  CHECK(edges == 2);
  // The event is free again once it is recorded outside.
  PTXGEN_CHECK_RESULT(driver.stream_wait_event(side, fork, 0), CUDA_ERROR_CAPTURED_EVENT);
  PTXGEN_OK(driver.event_record(fork, side));
  PTXGEN_OK(driver.event_synchronize(fork));
  PTXGEN_OK(driver.graph_destroy(graph));
}

TEST_CASE("captures that do not hang together are refused") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const CUstream origin = fixture.make_stream();
  const CUstream side = fixture.make_stream();
  const CUevent event = fixture.make_event();
  const CUdeviceptr a = fixture.allocate(64);
  CUgraph graph = nullptr;

  SECTION("a stream is not joined") {
    PTXGEN_OK(driver.stream_begin_capture(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
    PTXGEN_OK(driver.event_record(event, origin));
    PTXGEN_OK(driver.stream_wait_event(side, event, 0));
    PTXGEN_OK(driver.memset_d8_async(a, 1, 64, side));
    PTXGEN_CHECK_RESULT(driver.stream_end_capture(origin, &graph),
                        CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    CHECK(graph == nullptr);
    CHECK(status_of(fixture, side) == CU_STREAM_CAPTURE_STATUS_NONE);
  }
  SECTION("ended in the wrong stream") {
    PTXGEN_OK(driver.stream_begin_capture(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
    PTXGEN_OK(driver.event_record(event, origin));
    PTXGEN_OK(driver.stream_wait_event(side, event, 0));
    PTXGEN_CHECK_RESULT(driver.stream_end_capture(side, &graph),
                        CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    end_invalid(fixture, origin);
  }
  SECTION("ended by the wrong thread") {
    PTXGEN_OK(driver.stream_begin_capture(origin, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    CUresult result = CUDA_SUCCESS;
    std::thread([&] { result = driver.stream_end_capture(origin, &graph); }).join();
    PTXGEN_CHECK_RESULT(result, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    PTXGEN_OK(driver.stream_end_capture(origin, &graph));
    PTXGEN_OK(driver.stream_begin_capture(origin, CU_STREAM_CAPTURE_MODE_RELAXED));
    std::thread([&] { result = driver.stream_end_capture(origin, &graph); }).join();
    PTXGEN_CHECK_RESULT(result, CUDA_SUCCESS);
  }
  SECTION("it waits for work outside") {
    PTXGEN_OK(driver.event_record(event, side));
    PTXGEN_OK(driver.stream_begin_capture(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
    PTXGEN_CHECK_RESULT(driver.stream_wait_event(origin, event, 0),
                        CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    end_invalid(fixture, origin);
  }
  SECTION("two captures meet") {
    PTXGEN_OK(driver.stream_begin_capture(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
    PTXGEN_OK(driver.stream_begin_capture(side, CU_STREAM_CAPTURE_MODE_GLOBAL));
    PTXGEN_OK(driver.event_record(event, side));
    PTXGEN_CHECK_RESULT(driver.stream_wait_event(origin, event, 0),
                        CUDA_ERROR_STREAM_CAPTURE_MERGE);
    end_invalid(fixture, origin);
    end_invalid(fixture, side);
  }
  SECTION("the legacy stream is used beside it") {
    const CUstream blocking = fixture.make_stream(CU_STREAM_DEFAULT);
    PTXGEN_OK(driver.stream_begin_capture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    PTXGEN_CHECK_RESULT(driver.memset_d8_async(a, 1, 64, nullptr),
                        CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    end_invalid(fixture, blocking);
    PTXGEN_OK(driver.stream_begin_capture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    PTXGEN_CHECK_RESULT(driver.stream_is_capturing(nullptr, &status),
                        CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    PTXGEN_CHECK_RESULT(driver.memset_d8(a, 1, 64), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    end_invalid(fixture, blocking);
    PTXGEN_CHECK_RESULT(driver.stream_begin_capture(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED),
                        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  SECTION("a thread waits for it") {
    PTXGEN_OK(driver.stream_begin_capture(origin, CU_STREAM_CAPTURE_MODE_RELAXED));
    PTXGEN_CHECK_RESULT(driver.stream_synchronize(origin), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    PTXGEN_CHECK_RESULT(driver.memset_d8_async(a, 1, 64, origin),
                        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    end_invalid(fixture, origin);
    PTXGEN_OK(driver.stream_begin_capture(origin, CU_STREAM_CAPTURE_MODE_RELAXED));
    PTXGEN_CHECK_RESULT(driver.stream_query(origin), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_invalid(fixture, origin);
    PTXGEN_OK(driver.stream_begin_capture(origin, CU_STREAM_CAPTURE_MODE_RELAXED));
    PTXGEN_CHECK_RESULT(driver.ctx_synchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_invalid(fixture, origin);
  }
  SECTION("its stream is destroyed") {
    PTXGEN_OK(driver.stream_begin_capture(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
    PTXGEN_OK(driver.event_record(event, origin));
    PTXGEN_OK(driver.stream_wait_event(side, event, 0));
    PTXGEN_OK(driver.stream_destroy(origin));
    CHECK(status_of(fixture, side) == CU_STREAM_CAPTURE_STATUS_NONE);
    PTXGEN_OK(driver.mem_free(a));
  }
  SECTION("another stream is destroyed after it was joined") {
    const CUevent end = fixture.make_event();
    PTXGEN_OK(driver.stream_begin_capture(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
    PTXGEN_OK(driver.event_record(event, origin));
    PTXGEN_OK(driver.stream_wait_event(side, event, 0));
    PTXGEN_OK(driver.memset_d8_async(a, 1, 1, side));
    PTXGEN_OK(driver.event_record(end, side));
    PTXGEN_OK(driver.stream_wait_event(origin, end, 0));
    PTXGEN_OK(driver.stream_destroy(side));
    CUgraph ended = nullptr;
    PTXGEN_OK(driver.stream_end_capture(origin, &ended));
  }
  SECTION("another stream is destroyed that was not joined") {
    PTXGEN_OK(driver.stream_begin_capture(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
    PTXGEN_OK(driver.event_record(event, origin));
    PTXGEN_OK(driver.stream_wait_event(side, event, 0));
    PTXGEN_OK(driver.memset_d8_async(a, 1, 1, side));
    PTXGEN_OK(driver.stream_destroy(side));
    CUgraph ended = nullptr;
    PTXGEN_CHECK_RESULT(driver.stream_end_capture(origin, &ended),
                        CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  }
  SECTION("its context is destroyed") {
    CUcontext second = nullptr;
    PTXGEN_OK(driver.ctx_create_v2(&second, 0, 0));
    const CUstream there = fixture.make_stream();
    PTXGEN_OK(driver.stream_begin_capture(there, CU_STREAM_CAPTURE_MODE_GLOBAL));
    PTXGEN_OK(driver.ctx_destroy(second));
    PTXGEN_CHECK_RESULT(driver.stream_end_capture(there, &graph), CUDA_ERROR_INVALID_HANDLE);
    PTXGEN_OK(driver.mem_free(a));
  }
}

TEST_CASE("the mode decides which calls are unsafe") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const CUstream stream = fixture.make_stream();
  CUgraph graph = nullptr;
  const auto allocates = [&] {
    CUdeviceptr address = 0;
    static_cast<void>(driver.ctx_set_current(fixture.context));
    return driver.mem_alloc(&address, 16);
  };
  const auto elsewhere = [&] {
    CUresult result = CUDA_SUCCESS;
    std::thread([&] { result = allocates(); }).join();
    return result;
  };
  PTXGEN_OK(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  PTXGEN_CHECK_RESULT(allocates(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  end_invalid(fixture, stream);
  PTXGEN_OK(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  PTXGEN_CHECK_RESULT(elsewhere(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  end_invalid(fixture, stream);
  PTXGEN_OK(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  PTXGEN_OK(elsewhere());
  PTXGEN_CHECK_RESULT(allocates(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  end_invalid(fixture, stream);
  PTXGEN_OK(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  PTXGEN_OK(elsewhere());
  PTXGEN_OK(allocates());
  PTXGEN_OK(driver.stream_end_capture(stream, &graph));
  PTXGEN_OK(driver.graph_destroy(graph));
  PTXGEN_OK(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  PTXGEN_OK(driver.thread_exchange_stream_capture_mode(&mode));
  CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
  PTXGEN_OK(allocates());
  PTXGEN_OK(driver.thread_exchange_stream_capture_mode(&mode));
  CHECK(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
  PTXGEN_OK(driver.stream_end_capture(stream, &graph));
  PTXGEN_OK(driver.graph_destroy(graph));
  mode = static_cast<CUstreamCaptureMode>(3);
  PTXGEN_CHECK_RESULT(driver.thread_exchange_stream_capture_mode(&mode), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("external events and graphs are captured as nodes") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const CUstream stream = fixture.make_stream();
  const CUevent event = fixture.make_event();
  const CUdeviceptr a = fixture.allocate(64);
  CUgraph inner = nullptr;
  PTXGEN_OK(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  PTXGEN_OK(driver.memset_d8_async(a, 4, 64, stream));
  PTXGEN_OK(driver.stream_end_capture(stream, &inner));
  CUgraphExec executable = nullptr;
  PTXGEN_OK(driver.graph_instantiate_with_flags(&executable, inner, 0));
  CUgraph outer = nullptr;
  PTXGEN_OK(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  PTXGEN_OK(driver.graph_launch(executable, stream));
  PTXGEN_OK(driver.event_record_with_flags(event, stream, 1));
  PTXGEN_OK(driver.stream_end_capture(stream, &outer));
  std::size_t count = 2;
  CUgraphNode nodes[2];
  PTXGEN_OK(driver.graph_get_nodes(outer, nodes, &count));
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  PTXGEN_OK(driver.graph_node_get_type(nodes[0], &type));
  CHECK(type == CU_GRAPH_NODE_TYPE_GRAPH);
  PTXGEN_OK(driver.graph_node_get_type(nodes[1], &type));
  CHECK(type == CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  CUgraphExec full = nullptr;
  PTXGEN_OK(driver.graph_instantiate_with_flags(&full, outer, 0));
  Gate gate(driver, stream);
  PTXGEN_OK(driver.graph_launch(full, stream));
  PTXGEN_CHECK_RESULT(driver.event_query(event), CUDA_ERROR_NOT_READY);
  gate.open();
  PTXGEN_OK(driver.event_synchronize(event));
  CHECK(fixture.bytes_of(a, 64) == std::vector<unsigned char>(64, 4));
  for (const CUgraph graph : {inner, outer}) PTXGEN_OK(driver.graph_destroy(graph));
  for (const CUgraphExec one : {executable, full}) PTXGEN_OK(driver.graph_exec_destroy(one));
}

TEST_CASE("threads capture and launch beside each other") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  std::atomic<int> wrong{0};
  const CUdeviceptr memory = fixture.allocate(6 * 256);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const auto ok = [&](CUresult result) {
        if (result != CUDA_SUCCESS) ++wrong;
      };
      ok(driver.ctx_set_current(fixture.context));
      CUstream stream = nullptr;
      ok(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
      for (unsigned i = 0; i < 20; ++i) {
        CUgraph graph = nullptr;
        CUgraphExec executable = nullptr;
        ok(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        ok(driver.memset_d32_async(memory + t * 256, t * 100 + i, 64, stream));
        ok(driver.stream_end_capture(stream, &graph));
        ok(driver.graph_instantiate_with_flags(&executable, graph, 0));
        ok(driver.graph_launch(executable, stream));
        ok(driver.graph_exec_destroy(executable));
        ok(driver.graph_destroy(graph));
        unsigned value = 0;
        ok(driver.memcpy_to_host_async(&value, memory + t * 256 + 252, 4, stream));
        if (value != t * 100 + i) ++wrong;
      }
      ok(driver.stream_destroy(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}
