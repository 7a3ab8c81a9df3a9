// tests/runtime/program_graph_memory_test.cpp - memory of graphs in recorded programs
#include "recorded_program.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using namespace ptxgen::driver;
using Catch::Matchers::Contains;

namespace {

constexpr unsigned long long kAutoFree = 1;  // CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH

/// Work that a stream captures, and its graph.
struct CapturedGraph {
  template <class Work>
  CapturedGraph(RecordedProgram& program, Work&& work) : driver(program.driver) {
    REQUIRE_OK(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    REQUIRE_OK(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    work(stream);
    REQUIRE_OK(driver.stream_end_capture(stream, &graph));
  }
  void instantiate(unsigned long long flags = 0) {
    REQUIRE_OK(driver.graph_instantiate_with_flags(&executable, graph, flags));
  }
  void launch() {
    REQUIRE_OK(driver.graph_launch(executable, stream));
    REQUIRE_OK(driver.stream_synchronize(stream));
  }

  const Table& driver;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
};

/// Two launches of a graph that has scratch memory, and one of a kernel.
Recording with_scratch() {
  RecordedProgram program;
  const Table& driver = program.driver;
  program.load();
  const CUdeviceptr data = program.allocate(64);
  std::vector<std::uint32_t> values = counted(16);
  std::vector<std::uint32_t> back(4);
  CapturedGraph scratch(program, [&](CUstream stream) {
    CUdeviceptr memory = 0;
    REQUIRE_OK(driver.mem_alloc_async(&memory, 64, stream));
    REQUIRE_OK(driver.memcpy_to_device_async(memory, values.data(), 64, stream));
    REQUIRE_OK(driver.memset_d32_async(memory, 1, 8, stream));
    program.scale(memory, 5, 16, stream);
    REQUIRE_OK(driver.memcpy_unified_async(data, memory, 64, stream));
    REQUIRE_OK(driver.memcpy_to_host_async(back.data(), memory, 16, stream));
    REQUIRE_OK(driver.mem_free_async(memory, stream));
  });
  scratch.instantiate();
  scratch.launch();
  values[9] = 100;
  scratch.launch();
  CHECK(back[0] == 8);
  program.scale(data, 1);
  CHECK(program.read(data, 16)[0] == 8 * 3 + 1);
  CHECK(program.read(data, 16)[9] == 305 * 3 + 1);
  REQUIRE_OK(driver.graph_exec_destroy(scratch.executable));
  REQUIRE_OK(driver.graph_destroy(scratch.graph));
  return program.finish();
}

template <class Kind>
Kind& step_in(Recording& recording) {
  const auto is_one = [](const Step& step) { return std::holds_alternative<Kind>(step); };
  return std::get<Kind>(*std::ranges::find_if(recording.steps, is_one));
}

}  // namespace

TEST_CASE("a graph that allocates and frees is one frame of steps") {
  const Recording recording = with_scratch();
  CHECK(recording.notes.empty());
  CHECK(recording.frame_hashes.size() == 3);
  CHECK(count_of<BeginGraphStep>(recording) == 2);
  CHECK(count_of<GraphMemoryStep>(recording) == 2);  // the node, and its end
  CHECK(count_of<LaunchStep>(recording) == 3);
  CHECK(count_of<FreeStep>(recording) == 2);
  CHECK(count_of<CopyStep>(recording) == 2);
  const Recording read = parse_recording(to_json(recording), "x.json");
  CHECK(to_json(read) == to_json(recording));
  const Replay result = replayed_program(read);
  CHECK(result.same);
  CHECK(result.frames == 3);
  CHECK(result.hash == recording.hash);
  CHECK(result.moved == 0);
  const Replay moved = replayed_program(recording, {}, 100000);
  CHECK(moved.moved != 0);
  CHECK(moved.same);
  CHECK(replayed_program(recording, {std::nullopt, 0}).frames == 1);
}

TEST_CASE("what a graph changes otherwise is found at its end") {
  Recording recording = with_scratch();
  step_in<FillStep>(recording).value = 2;
  const Replay result = replayed_program(recording);
  REQUIRE(result.first);
  // What the host reads in the graph differs first.
  CHECK_THAT(to_text(*result.first, recording), Contains("the program reads other bytes of "));
  CHECK(result.differing_launches >= 1);
  recording = with_scratch();
  const Replay flipped = replayed_program(recording, {FlippedBit{2, 2, 8 * 36 + 1}});
  REQUIRE(flipped.first);
  CHECK(flipped.first->frame == 2);
}

TEST_CASE("memory that a graph keeps is the program's until it is freed") {
  RecordedProgram program;
  const Table& driver = program.driver;
  program.load();
  CUdeviceptr kept = 0;
  CapturedGraph keeping(program, [&](CUstream stream) {
    REQUIRE_OK(driver.mem_alloc_async(&kept, 64, stream));
    REQUIRE_OK(driver.memset_d32_async(kept, 2, 16, stream));
    program.scale(kept, 1, 16, stream);
  });
  keeping.instantiate();
  keeping.launch();
  CHECK(program.read(kept, 16)[15] == 7);
  program.scale(kept, 4);
  CHECK(driver.graph_launch(keeping.executable, keeping.stream) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(driver.mem_free_async(kept, keeping.stream));
  keeping.launch();
  REQUIRE_OK(driver.mem_free(kept));
  REQUIRE_OK(driver.graph_exec_destroy(keeping.executable));
  keeping.instantiate(kAutoFree);
  keeping.launch();
  keeping.launch();
  CHECK(program.read(kept, 16)[15] == 7);
  REQUIRE_OK(driver.graph_exec_destroy(keeping.executable));
  REQUIRE_OK(driver.graph_destroy(keeping.graph));
  program.scale(kept, 9);
  REQUIRE_OK(driver.mem_free(kept));
  const Recording recording = program.finish();
  CHECK(recording.notes.empty());
  CHECK(recording.frame_hashes.size() == 6);
  CHECK(count_of<GraphMemoryStep>(recording) == 2);
  CHECK(count_of<AllocateStep>(recording) == 4);
  CHECK(count_of<FreeStep>(recording) == 4);
  const Replay result = replayed_program(recording);
  CHECK(result.same);
  CHECK(result.moved == 0);
}

TEST_CASE("a library that a graph uses first is loaded before it") {
  RecordedProgram program;
  const Table& driver = program.driver;
  const std::string ptx(kPtx);
  CUlibrary library = nullptr;
  REQUIRE_OK(
      driver.library_load_data(&library, ptx.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel = nullptr;
  REQUIRE_OK(driver.library_get_kernel(&kernel, library, "scale"));
  program.function = reinterpret_cast<CUfunction>(kernel);
  const CUdeviceptr data = program.allocate(64);
  program.write(data, counted(16));
  CapturedGraph first(program, [&](CUstream stream) {
    CUdeviceptr memory = 0;
    REQUIRE_OK(driver.mem_alloc_async(&memory, 64, stream));
    program.scale(data, 1, 16, stream);
    REQUIRE_OK(driver.mem_free_async(memory, stream));
  });
  first.instantiate();
  first.launch();
  CHECK(program.read(data, 16)[1] == 4);
  const Recording recording = program.finish();
  CHECK(recording.notes.empty());
  CHECK(count_of<LoadStep>(recording) == 1);
  REQUIRE(count_of<EndGraphStep>(recording) == 1);
  for (const Step& step : recording.steps) {
    const auto* const end = std::get_if<EndGraphStep>(&step);
    if (end != nullptr) CHECK(end->outputs.size() == 2);  // and the counter
  }
  CHECK(replayed_program(recording).same);
}

TEST_CASE("a fault in a graph that allocates ends the recording, and the replay") {
  RecordedProgram program;
  const Table& driver = program.driver;
  program.load();
  CapturedGraph faulty(program, [&](CUstream stream) {
    CUdeviceptr memory = 0;
    REQUIRE_OK(driver.mem_alloc_async(&memory, 64, stream));
    program.scale(0x10, 1, 16, stream);
    REQUIRE_OK(driver.mem_free_async(memory, stream));
  });
  faulty.instantiate();
  REQUIRE_OK(driver.graph_launch(faulty.executable, faulty.stream));
  CHECK(driver.stream_synchronize(faulty.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
  const Recording recording = program.finish();
  CHECK(recording.failure == "device-fault: CUDA_ERROR_ILLEGAL_ADDRESS");
  CHECK(recording.frame_hashes.empty());
  const Replay result = replayed_program(recording);
  CHECK(result.same);
  CHECK(result.failure == recording.failure);
}

TEST_CASE("damaged steps of graphs are refused by name") {
  const Recording good = with_scratch();
  Recording recording = good;
  step_in<GraphMemoryStep>(recording).bytes = 128;
  CHECK_THAT(refusal_of(recording), Contains("64 bytes at "));
  CHECK_THAT(refusal_of(recording), Contains(" are of no allocation node"));
  recording = good;
  step_in<GraphMemoryStep>(recording).bytes = 0;
  CHECK_THAT(refusal_of(recording), Contains("there is no allocation node of "));
  recording = good;
  recording.steps.insert(recording.steps.begin() + 2, Step(step_in<GraphMemoryStep>(recording)));
  recording.steps.insert(recording.steps.begin() + 2, Step(step_in<GraphMemoryStep>(recording)));
  CHECK_THAT(refusal_of(recording), Contains("there is an allocation node of "));
  recording = good;
  recording.steps.insert(recording.steps.begin() + 1, BeginGraphStep{});
  CHECK_THAT(refusal_of(recording), Contains("a graph within a graph"));
  recording = good;
  recording.steps.insert(recording.steps.begin() + 1, EndGraphStep{});
  CHECK_THAT(refusal_of(recording), Contains("the end of a graph that has not begun"));
}

TEST_CASE("a recording of graphs with any number of a step replaced is replayed or refused") {
  CHECK(refused_with_other_numbers(to_json(with_scratch())) > 10);
}
