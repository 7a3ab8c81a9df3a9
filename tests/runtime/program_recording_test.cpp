// tests/runtime/program_recording_test.cpp - programs recorded at the driver, and replayed
#include <cstring>

#include "recorded_program.hpp"
#include "runtime/recording/program_json.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using namespace ptxgen::driver;
using Catch::Matchers::Contains;

namespace {

/// Two launches on 16 integers.
Recording two_launches() {
  RecordedProgram program;
  program.load();
  const CUdeviceptr data = program.allocate(64);
  program.write(data, counted(16));
  program.scale(data, 1);
  program.scale(data, 2);
  CHECK(program.read(data, 16)[5] == (5 * 3 + 1) * 3 + 2);
  return program.finish();
}

}  // namespace

TEST_CASE("a recorded program replays to the same bytes, launch by launch") {
  const Recording recording = two_launches();
  CHECK(recording.is_program());
  CHECK(recording.gpu == "h200");
  CHECK(recording.cut_off == "");
  CHECK(recording.frame_hashes.size() == 2);
  CHECK(recording.frame_hashes[0] != recording.frame_hashes[1]);
  REQUIRE(recording.buffers.size() == 3);
  CHECK(recording.buffers[0].name == "factor");
  CHECK(recording.buffers[1].name == "counter");
  CHECK(recording.buffers[2].name == "memory0");
  CHECK(count_of<WriteStep>(recording) == 1);
  CHECK(count_of<ReadStep>(recording) == 1);
  // The counter and the data.
  CHECK(launch_number(recording, 0).outputs.size() == 2);
  CHECK(launch_number(recording, 0).arguments.size() == 12);

  const Recording read = parse_recording(to_json(recording), "x.json");
  CHECK(to_json(read) == to_json(recording));
  const Replay result = replayed_program(read);
  CHECK(result.same);
  CHECK(result.frames == 2);
  CHECK(result.hash == recording.hash);
  CHECK(result.moved == 0);
  CHECK(replayed_program(recording, {std::nullopt, 0}).frames == 1);
  CHECK(replayed_program(recording, {std::nullopt, 0}).same);
}

TEST_CASE("memory at other addresses is found by the arguments that point into it") {
  const Recording recording = two_launches();
  const Replay result = replayed_program(recording, {}, 100000);
  CHECK(result.moved == 3);
  CHECK(result.same);
  CHECK(result.hash == recording.hash);
}

TEST_CASE("an address in memory is good where memory is at its recorded addresses") {
  RecordedProgram program;
  program.load();
  CUfunction follow = nullptr;
  REQUIRE_OK(program.driver.module_get_function(&follow, program.module, "follow"));
  CUdeviceptr slot = program.allocate(8);
  const CUdeviceptr data = program.allocate(4);
  REQUIRE_OK(program.driver.memcpy_to_device(slot, &data, 8));
  program.write(data, {41});
  void* arguments[] = {&slot};
  REQUIRE_OK(
      program.driver.launch_kernel(follow, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  CHECK(program.read(data, 1)[0] == 42);
  const Recording recording = program.finish();
  CHECK(replayed_program(recording).same);
  const Replay moved = replayed_program(recording, {}, 100000);
  CHECK(moved.moved == 4);
  CHECK_FALSE(moved.same);
}

TEST_CASE("an inverted bit of memory is found at its launch") {
  const Recording recording = two_launches();
  const Replay result = replayed_program(recording, {FlippedBit{1, 2, 8 * 20 + 3}});
  CHECK_FALSE(result.same);
  REQUIRE(result.first);
  CHECK(to_text(*result.first, recording) ==
        "launch 1 (scale): 1 byte of memory0 differs, the first is byte 20: 4a, and was 32");
  CHECK(result.differing_launches == 1);
  const Replay both = replayed_program(recording, {FlippedBit{0, 2, 8 * 20 + 3}});
  CHECK(both.differing_launches == 2);
  REQUIRE(both.first);
  CHECK(both.first->frame == 0);
  CHECK_THROWS_WITH(replayed_program(recording, {FlippedBit{2, 2, 0}}),
                    Contains("there is no bit 0 of buffer 2 in frame 2: the recording has 2 "));
}

TEST_CASE("a changed byte of an input or of a kernel is found, in the file by its hash") {
  const Recording recording = two_launches();
  Recording input = recording;
  const auto changed = [](Recording& result, const std::string& hash) -> std::vector<std::byte>& {
    return std::ranges::find(result.contents, hash, &StepContents::value_type::first)->second;
  };
  for (const Step& step : recording.steps) {
    if (const auto* write = std::get_if<WriteStep>(&step)) {
      changed(input, write->content)[4] ^= std::byte{1};
    }
  }
  const Replay other_input = replayed_program(input);
  CHECK_FALSE(other_input.same);
  REQUIRE(other_input.first);
  CHECK_THAT(to_text(*other_input.first, input),
             Contains("launch 0 (scale): 1 byte of memory0 differs, the first is byte 4: "));

  Recording kernel = recording;
  std::vector<std::byte>& ptx = changed(kernel, std::get<LoadStep>(recording.steps[0]).ptx);
  std::string text(reinterpret_cast<const char*>(ptx.data()), ptx.size());
  text.replace(text.find("[counter], 1"), 12, "[counter], 2");
  std::memcpy(ptx.data(), text.data(), text.size());
  const Replay other_kernel = replayed_program(kernel);
  CHECK_FALSE(other_kernel.same);
  REQUIRE(other_kernel.first);
  CHECK(other_kernel.first->frame == 0);
  CHECK(other_kernel.first->buffer == "counter");
  CHECK(other_kernel.differing_launches == 2);
  CHECK_THROWS_WITH(parse_recording(to_json(kernel), "x.json"), Contains(": the file was changed"));

  Recording hash = recording;
  for (Step& step : hash.steps) {
    if (auto* read = std::get_if<ReadStep>(&step)) read->hash[0] = read->hash[0] == '0' ? '1' : '0';
  }
  const Replay read = replayed_program(hash);
  CHECK_FALSE(read.same);
  REQUIRE(read.first);
  CHECK_THAT(to_text(*read.first, hash),
             Contains("after 2 launches: the program reads other bytes of memory0, from byte 0: "));
}

TEST_CASE("copies, fills, variables and attributes are steps") {
  RecordedProgram program;
  const Table& driver = program.driver;
  program.load();
  const CUdeviceptr data = program.allocate(256);
  const CUdeviceptr other = program.allocate(256);
  REQUIRE_OK(driver.memset_d32(data, 7, 64));
  REQUIRE_OK(driver.memset_2d_d8(data, 16, 9, 4, 8));
  REQUIRE_OK(driver.memset_d16_async(other, 0x1234, 16, nullptr));
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = data;
  copy.dstDevice = other;
  copy.srcPitch = 16;
  copy.dstPitch = 32;
  copy.WidthInBytes = 12;
  copy.Height = 5;
  REQUIRE_OK(driver.memcpy_2d(&copy));
  CUdeviceptr factor = 0;
  std::size_t bytes = 0;
  REQUIRE_OK(driver.module_get_global(&factor, &bytes, program.module, "factor"));
  program.write(factor, {5});
  REQUIRE_OK(driver.func_set_attribute(program.function,
                                       CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
  program.scale(other, 1);
  CHECK(program.read(other, 1)[0] == 0x09090909u * 5 + 1);
  REQUIRE_OK(driver.mem_free(other));
  const CUdeviceptr last = program.allocate(64);
  program.scale(last, 4);
  REQUIRE_OK(driver.module_unload(program.module));
  const Recording recording = program.finish();
  CHECK(count_of<FillStep>(recording) == 3);
  CHECK(count_of<CopyStep>(recording) == 1);
  CHECK(count_of<AttributeStep>(recording) == 1);
  CHECK(count_of<FreeStep>(recording) == 1);
  CHECK(count_of<UnloadStep>(recording) == 1);
  CHECK(recording.notes.empty());
  const Replay result = replayed_program(parse_recording(to_json(recording), "x.json"));
  CHECK(result.same);
  CHECK(result.frames == 2);
}

TEST_CASE("memory that the host writes without a call is found before the next launch") {
  RecordedProgram program;
  const Table& driver = program.driver;
  program.load();
  std::size_t expected = 1;
  CUdeviceptr managed = 0;
  const CUresult allocated = driver.mem_alloc_managed(&managed, 64, CU_MEM_ATTACH_GLOBAL);
  if (allocated == CUDA_SUCCESS) {
    auto* const values = reinterpret_cast<std::uint32_t*>(static_cast<std::uintptr_t>(managed));
    for (std::uint32_t i = 0; i < 16; ++i) values[i] = 100 + i;
    program.scale(managed, 1);
    REQUIRE_OK(driver.ctx_synchronize());
    CHECK(values[3] == 310);
    values[3] = 1;
    program.scale(managed, 1);
    expected = 3;
  } else {
    // Sanitizers use the addresses that host and device would share.
    CHECK(allocated == CUDA_ERROR_NOT_SUPPORTED);
  }
  void* pinned = nullptr;
  REQUIRE_OK(driver.mem_host_alloc(&pinned, 64, 2));
  CUdeviceptr address = 0;
  REQUIRE_OK(driver.mem_host_get_device_pointer(&address, pinned, 0));
  std::memset(pinned, 1, 64);
  program.scale(address, 1);
  REQUIRE_OK(driver.mem_free_host(pinned));
  const Recording recording = program.finish();
  std::size_t unseen = 0;
  for (const Step& step : recording.steps) {
    const auto* const write = std::get_if<WriteStep>(&step);
    unseen += write != nullptr && write->unseen;
  }
  CHECK(unseen == expected);
  CHECK(replayed_program(recording).same);
}

TEST_CASE("a graph is recorded as its launches") {
  RecordedProgram program;
  const Table& driver = program.driver;
  program.load();
  const CUdeviceptr data = program.allocate(64);
  CUstream stream = nullptr;
  REQUIRE_OK(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
  REQUIRE_OK(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  std::vector<std::uint32_t> values = counted(16);
  REQUIRE_OK(driver.memcpy_to_device_async(data, values.data(), 64, stream));
  program.scale(data, 1, 16, stream);
  REQUIRE_OK(driver.memset_d32_async(data, 6, 2, stream));
  program.scale(data, 2, 16, stream);
  CUgraph graph = nullptr;
  REQUIRE_OK(driver.stream_end_capture(stream, &graph));
  CUgraph clone = nullptr;
  REQUIRE_OK(driver.graph_clone(&clone, graph));
  CUgraph parent = nullptr;
  CUgraphNode child = nullptr;
  REQUIRE_OK(driver.graph_create(&parent, 0));
  REQUIRE_OK(driver.graph_add_child_graph_node(&child, parent, nullptr, 0, clone));
  CUgraphExec executable = nullptr;
  REQUIRE_OK(driver.graph_instantiate_with_flags(&executable, parent, 0));
  REQUIRE_OK(driver.graph_launch(executable, stream));
  REQUIRE_OK(driver.stream_synchronize(stream));
  CHECK(program.read(data, 16)[0] == 6 * 3 + 2);
  CHECK(program.read(data, 16)[9] == (9 * 3 + 1) * 3 + 2);
  values[9] = 50;
  REQUIRE_OK(driver.graph_launch(executable, stream));
  CHECK(program.read(data, 16)[9] == (50 * 3 + 1) * 3 + 2);
  const Recording recording = program.finish();
  CHECK(recording.notes.empty());
  CHECK(recording.frame_hashes.size() == 4);
  CHECK(count_of<FillStep>(recording) == 2);
  CHECK(count_of<WriteStep>(recording) == 2);
  CHECK(replayed_program(recording).same);
}

TEST_CASE("parameters of nodes that are set later are those that are recorded") {
  RecordedProgram program;
  const Table& driver = program.driver;
  const CUdeviceptr data = program.allocate(64);
  CUDA_MEMSET_NODE_PARAMS fill{data, 64, 1, 4, 16, 1};
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUcontext context = nullptr;
  REQUIRE_OK(driver.ctx_get_current(&context));
  REQUIRE_OK(driver.graph_create(&graph, 0));
  REQUIRE_OK(driver.graph_add_memset_node(&node, graph, nullptr, 0, &fill, context));
  fill.value = 2;
  REQUIRE_OK(driver.graph_memset_node_set_params(node, &fill));
  CUgraphExec executable = nullptr;
  REQUIRE_OK(driver.graph_instantiate_with_flags(&executable, graph, 0));
  REQUIRE_OK(driver.graph_launch(executable, nullptr));
  CHECK(program.read(data, 16) == std::vector<std::uint32_t>(16, 2));
  fill.value = 3;
  REQUIRE_OK(driver.graph_exec_memset_node_set_params(executable, node, &fill, context));
  REQUIRE_OK(driver.graph_launch(executable, nullptr));
  CHECK(program.read(data, 16) == std::vector<std::uint32_t>(16, 3));
  const Recording recording = program.finish();
  CHECK(recording.notes.empty());
  CHECK(count_of<FillStep>(recording) == 2);
  CHECK(replayed_program(recording).same);
}

TEST_CASE("a graph with a copy of an array that is not recorded is recorded by its effect") {
  RecordedProgram program;
  const Table& driver = program.driver;
  program.load();
  const CUdeviceptr data = program.allocate(64);
  program.write(data, counted(16));
  const CUDA_ARRAY_DESCRIPTOR words{16, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
  CUarray array = nullptr;
  REQUIRE_OK(emulated::table().array_create(&array, &words));  // the recorder does not see it
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = data;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = 64;
  copy.Height = 1;
  CUstream stream = nullptr;
  REQUIRE_OK(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
  REQUIRE_OK(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  REQUIRE_OK(driver.memcpy_2d_async(&copy, stream));
  program.scale(data, 5, 16, stream);
  CUgraph graph = nullptr;
  REQUIRE_OK(driver.stream_end_capture(stream, &graph));
  CUgraphExec executable = nullptr;
  REQUIRE_OK(driver.graph_instantiate_with_flags(&executable, graph, 0));
  REQUIRE_OK(driver.graph_launch(executable, stream));
  REQUIRE_OK(driver.stream_synchronize(stream));
  REQUIRE_OK(driver.memcpy_2d(&copy));
  program.scale(data, 1);
  CHECK(program.read(data, 16)[1] == 8 * 3 + 1);
  const Recording recording = program.finish();
  const auto has_note = [&](const std::string& text) {
    return std::ranges::any_of(recording.notes, [&](const std::string& note) {
      return note.find(text) != std::string::npos;
    });
  };
  CHECK(has_note("a graph with a node that is not recorded"));
  CHECK(has_note("a copy of an array that no recorded call has created is not recorded"));
  CHECK(recording.frame_hashes.size() == 1);
  CHECK(replayed_program(recording).same);
}

TEST_CASE("the copies of a batch are steps of their own") {
  RecordedProgram program;
  const Table& driver = program.driver;
  const CUdeviceptr data = program.allocate(256);
  const auto address = [](auto& values) { return reinterpret_cast<std::uintptr_t>(values.data()); };
  std::vector<std::uint32_t> values = counted(16);
  std::vector<std::uint32_t> read(4);
  CUstream stream = nullptr;
  REQUIRE_OK(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  CUdeviceptr to[] = {data, data + 64, address(read)};
  CUdeviceptr from[] = {address(values), data, data + 64};
  std::size_t sizes[] = {64, 64, 16};
  std::size_t first = 0;
  REQUIRE_OK(driver.memcpy_batch_async(to, from, sizes, 3, &attributes, &first, 1, stream));
  REQUIRE_OK(driver.stream_synchronize(stream));
  CHECK(read == counted(4));
  // Two rows of two elements, from rows of four to rows of eight.
  CUDA_MEMCPY3D_BATCH_OP box{};
  box.src.type = box.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  box.src.op.ptr = {address(values), 16, 0, {}};
  box.dst.op.ptr = {data + 128, 32, 0, {}};
  box.extent = {8, 2, 1};
  box.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  REQUIRE_OK(driver.memcpy_3d_batch_async(1, &box, 0, stream));
  REQUIRE_OK(driver.stream_synchronize(stream));
  const std::vector<std::uint32_t> after = program.read(data + 128, 16);
  CHECK(after[1] == values[1]);
  CHECK(after[9] == values[5]);
  // A refused batch leaves nothing.
  sizes[2] = 1024;
  CHECK(driver.memcpy_batch_async(to, from, sizes, 3, &attributes, &first, 1, stream) ==
        CUDA_ERROR_INVALID_VALUE);
  const Recording recording = program.finish();
  CHECK(recording.notes.empty());
  CHECK(count_of<WriteStep>(recording) == 2);
  CHECK(count_of<CopyStep>(recording) == 1);
  CHECK(count_of<ReadStep>(recording) == 2);
  CHECK(replayed_program(recording).same);
}

TEST_CASE("calls from host functions are refused, and do not wait for the recorder") {
  RecordedProgram program;
  program.load();
  const CUdeviceptr data = program.allocate(64);
  struct Calls {
    Table driver;
    std::vector<CUresult> results;
  } calls{program.driver, {}};
  REQUIRE_OK(program.driver.launch_host_func(
      nullptr,
      [](void* user) {
        auto& [driver, results] = *static_cast<Calls*>(user);
        CUdeviceptr address = 0;
        results.push_back(driver.mem_alloc(&address, 4));
        results.push_back(driver.graph_exec_destroy(nullptr));
        results.push_back(driver.ctx_destroy(nullptr));
        results.push_back(driver.ctx_synchronize());
      },
      &calls));
  program.scale(data, 1);
  CHECK(calls.results == std::vector<CUresult>(4, CUDA_ERROR_NOT_PERMITTED));
  CHECK(replayed_program(program.finish()).same);
}

TEST_CASE("a fault ends a recording, and is part of it") {
  RecordedProgram program;
  program.load();
  const CUdeviceptr data = program.allocate(64);
  program.scale(data, 1);
  program.scale(0x10, 1);
  const Recording recording = program.finish();
  CHECK(recording.failure == "device-fault: CUDA_ERROR_ILLEGAL_ADDRESS");
  CHECK(recording.frame_hashes.size() == 1);
  const Replay result = replayed_program(recording);
  CHECK(result.same);
  CHECK(result.failure == recording.failure);
}

TEST_CASE("what is not recorded is said, and what it changes is part of the recording") {
  RecordedProgram program;
  const Table& driver = program.driver;
  program.load();
  const CUdeviceptr data = program.allocate(64);
  program.write(data, counted(16));
  REQUIRE_OK(driver.func_set_block_shape(program.function, 16, 1, 1));
  REQUIRE_OK(driver.param_set_size(program.function, 12));
  std::uint64_t address = data;
  REQUIRE_OK(driver.param_set_v(program.function, 0, &address, 8));
  REQUIRE_OK(driver.param_set_i(program.function, 8, 1));
  REQUIRE_OK(driver.launch_grid(program.function, 1, 1));
  program.scale(data, 2);
  const Recording recording = program.finish();
  REQUIRE(recording.notes.size() == 1);
  CHECK_THAT(recording.notes[0],
             Contains("a launch that is not recorded (of machine code, or by "));
  CHECK(recording.frame_hashes.size() == 1);
  CHECK(replayed_program(recording).same);
}

TEST_CASE("a recording ends at its limit and where the disk is full, and replays until there") {
  const auto run = [](RecordedProgram& program) {
    program.load();
    const CUdeviceptr data = program.allocate(64);
    for (std::uint32_t i = 0; i < 100; ++i) program.scale(data, i);
    CHECK(program.read(data, 1)[0] != 0);
  };
  RecordedProgram full(6000);
  run(full);
  CHECK(full.file().ended());
  const Recording part = parse_recording(full.text(), "x.json");
  CHECK(part.cut_off == "the program ended without ending its recording");
  CHECK(part.frame_hashes.size() > 2);
  CHECK(part.frame_hashes.size() < 100);
  CHECK(replayed_program(part).same);

  RecordedProgram limited(~std::uint64_t{0}, 6000);
  run(limited);
  const Recording begun = parse_recording(limited.text(), "x.json");
  CHECK_THAT(begun.cut_off, Contains("(PTXGEN_RECORD_LIMIT)"));
  CHECK(begun.frame_hashes == part.frame_hashes);
  // A line that a process did not finish.
  const std::string text = full.text();
  CHECK(parse_recording(text.substr(0, text.size() - 5), "x.json").frame_hashes.size() + 1 >=
        part.frame_hashes.size());
}

TEST_CASE("a file that is no recording of a program is refused by its line") {
  const std::string good = to_json(two_launches());
  const auto refusal = [](const std::string& text) {
    try {
      (void)parse_recording(text, "x.json");
    } catch (const Error& error) {
      return error.message;
    }
    return std::string("accepted");
  };
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return refusal(text);
  };
  CHECK_THAT(with("\"step\":\"load\"", "\"step\":\"lead\""), Contains("'lead' is no step"));
  CHECK_THAT(with("\"memory\":\"device\"", "\"memory\":\"devise\""),
             Contains("'devise' is no kind of memory"));
  CHECK_THAT(with("\"kernel\":", "\"colonel\":"), Contains("'kernel' not found"));
  CHECK_THAT(refusal(good.substr(0, good.find('\n') + 1)), Contains("it has no step"));

  Recording recording = two_launches();
  std::get<LaunchStep>(recording.steps[3]).module = 9;
  CHECK_THROWS_WITH(replayed_program(recording),
                    Contains("step 3: kernel scale is in module 9, which is "
                             "not loaded"));
}

TEST_CASE("a recording with any number of a step replaced is replayed or refused") {
  CHECK(refused_with_other_numbers(to_json(two_launches())) > 10);
}
