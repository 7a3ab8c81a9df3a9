// tests/runtime/program_arrays_test.cpp - arrays, textures and surfaces of recorded programs
#include <cstring>

#include "recorded_program.hpp"
#include "runtime/recording/program_json.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using namespace ptxgen::driver;
using Catch::Matchers::Contains;

namespace {

constexpr std::uint32_t kWidth = 8;
constexpr std::uint32_t kHeight = 6;
constexpr std::size_t kBytes = std::size_t{4} * kWidth * kHeight;

// One block a row. `draw` writes 100 + x + 8 y, `sample` reads an image to memory.
const std::string kImages = R"(.version 7.8
.target sm_75
.address_size 64
.visible .entry draw(.param .u64 surface)
{
  .reg .b32 %r<6>;
  .reg .b64 %d<2>;
  ld.param.u64 %d1, [surface];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  shl.b32 %r3, %r1, 2;
  mad.lo.u32 %r4, %r2, 8, %r1;
  add.u32 %r4, %r4, 100;
  sust.b.2d.b32.trap [%d1, {%r3, %r2}], {%r4};
  ret;
}
.visible .entry sample(.param .u64 texture, .param .u64 out)
{
  .reg .b32 %r<10>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [texture];
  ld.param.u64 %d2, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  tex.2d.v4.u32.s32 {%r3, %r4, %r5, %r6}, [%d1, {%r1, %r2}];
  mad.lo.u32 %r7, %r2, 8, %r1;
  mul.wide.u32 %d3, %r7, 4;
  add.u64 %d2, %d2, %d3;
  st.global.u32 [%d2], %r3;
  ret;
}
)";

CUarray create_array(RecordedProgram& program, std::size_t height, unsigned flags = 0) {
  const CUDA_ARRAY3D_DESCRIPTOR words{kWidth, height, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, flags};
  CUarray array = nullptr;
  REQUIRE_OK(program.driver.array_3d_create(&array, &words));
  return array;
}

/// All rows between an array and host memory.
CUDA_MEMCPY2D rows_of(CUarray array, std::uint32_t* host, bool to_array) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = to_array ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY;
  copy.dstMemoryType = to_array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST;
  copy.srcHost = copy.dstHost = host;
  copy.srcArray = copy.dstArray = array;
  copy.srcPitch = copy.dstPitch = copy.WidthInBytes = 4 * kWidth;
  copy.Height = kHeight;
  return copy;
}

CUDA_RESOURCE_DESC resource_of(CUarray array) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  return resource;
}

void launch_rows(RecordedProgram& program, const char* kernel, std::vector<void*> arguments) {
  CUfunction function = nullptr;
  REQUIRE_OK(program.driver.module_get_function(&function, program.module, kernel));
  REQUIRE_OK(program.driver.launch_kernel(function, kHeight, 1, 1, kWidth, 1, 1, 0, nullptr,
                                          arguments.data(), nullptr));
}

/// Two launches: an array is drawn, copied to another one, and that is sampled.
Recording drawn_and_sampled() {
  RecordedProgram program;
  const Table& driver = program.driver;
  program.load(kImages, "draw");
  CUarray drawn = create_array(program, kHeight, kArraySurface);
  CUarray copied = create_array(program, kHeight);
  CUdeviceptr out = program.allocate(kBytes);
  std::vector<std::uint32_t> values = counted(kWidth * kHeight);
  const CUDA_MEMCPY2D in = rows_of(drawn, values.data(), true);
  REQUIRE_OK(driver.memcpy_2d(&in));
  const CUDA_RESOURCE_DESC drawn_one = resource_of(drawn);
  const CUDA_RESOURCE_DESC copied_one = resource_of(copied);
  CUsurfObject surface = 0;
  CUtexObject texture = 0;
  CUDA_TEXTURE_DESC points{};
  points.flags = kTextureAsInteger;
  REQUIRE_OK(driver.surf_object_create(&surface, &drawn_one));
  REQUIRE_OK(driver.tex_object_create(&texture, &copied_one, &points, nullptr));
  launch_rows(program, "draw", {&surface});
  CUDA_MEMCPY2D between = rows_of(copied, nullptr, true);
  between.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  between.srcArray = drawn;
  REQUIRE_OK(driver.memcpy_2d(&between));
  launch_rows(program, "sample", {&texture, &out});
  const CUDA_MEMCPY2D back = rows_of(drawn, values.data(), false);
  REQUIRE_OK(driver.memcpy_2d(&back));
  CHECK(values[9] == 109);
  CHECK(program.read(out, 10)[9] == 109);
  REQUIRE_OK(driver.tex_object_destroy(texture));
  REQUIRE_OK(driver.surf_object_destroy(surface));
  REQUIRE_OK(driver.array_destroy(drawn));
  REQUIRE_OK(driver.array_destroy(copied));
  return program.finish();
}

template <class Kind>
Kind& first_of(Recording& recording) {
  const auto is_one = [](const Step& step) { return std::holds_alternative<Kind>(step); };
  return std::get<Kind>(*std::ranges::find_if(recording.steps, is_one));
}

}  // namespace

TEST_CASE("arrays, their copies, texture and surface objects are steps, and replay") {
  const Recording recording = drawn_and_sampled();
  CHECK(recording.notes.empty());
  REQUIRE(recording.buffers.size() == 3);
  CHECK(recording.buffers[0].name == "array0");
  CHECK(recording.buffers[1].name == "array1");
  CHECK(recording.buffers[2].name == "memory2");
  CHECK(recording.buffers[1].bytes == kBytes);
  CHECK(count_of<ObjectStep>(recording) == 2);
  CHECK(count_of<DestroyStep>(recording) == 2);
  CHECK(count_of<WriteStep>(recording) == 1);
  CHECK(count_of<CopyStep>(recording) == 1);
  CHECK(count_of<ReadStep>(recording) == 2);
  CHECK(count_of<FreeStep>(recording) == 2);
  // What the surface wrote is the launch's output.
  const LaunchStep& draw = launch_number(recording, 0);
  REQUIRE(draw.outputs.size() == 1);
  CHECK(draw.outputs[0].address == kFirstArrayAddress);
  CHECK(draw.outputs[0].bytes == kBytes - 3);  // up to the last byte that is another one
  const Recording read = parse_recording(to_json(recording), "x.json");
  CHECK(to_json(read) == to_json(recording));
  const Replay result = replayed_program(read);
  CHECK(result.same);
  CHECK(result.hash == recording.hash);
  CHECK(result.moved == 0);
}

TEST_CASE("an inverted bit of an array is found in the array and in what is sampled from it") {
  const Recording recording = drawn_and_sampled();
  const Replay drawn = replayed_program(recording, {FlippedBit{0, 0, 8 * 20 + 1}});
  CHECK(drawn.same);  // the launch writes all of it
  const Replay sampled = replayed_program(recording, {FlippedBit{1, 1, 8 * 20 + 1}});
  REQUIRE(sampled.first);
  CHECK(to_text(*sampled.first, recording) ==
        "launch 1 (sample): 1 byte of memory2 differs, the first is byte 20: 6b, and was 69");
  Recording changed = recording;
  first_of<LaunchStep>(changed).grid[0] = kHeight - 1;
  const Replay shorter = replayed_program(changed);
  REQUIRE(shorter.first);
  CHECK_THAT(to_text(*shorter.first, changed), Contains("launch 0 (draw): "));
  CHECK_THAT(to_text(*shorter.first, changed), Contains(" bytes of array0 differ"));
}

TEST_CASE("objects with other handles are found by the arguments that hold them") {
  const Recording recording = drawn_and_sampled();
  Settings settings;
  settings.search_usual_places = false;
  const Device device = Device::open("emulator:h200", settings);
  const Context context(device);
  const Table& driver = emulated::table();
  REQUIRE_OK(driver.ctx_set_current(context.handle()));
  const CUDA_ARRAY3D_DESCRIPTOR words{4, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  CUarray array = nullptr;
  REQUIRE_OK(driver.array_3d_create(&array, &words));
  const CUDA_RESOURCE_DESC resource = resource_of(array);
  const CUDA_TEXTURE_DESC points{};
  CUtexObject texture = 0;
  REQUIRE_OK(driver.tex_object_create(&texture, &resource, &points, nullptr));
  const Replay result = replay(context, recording);
  CHECK(result.moved >= 2);
  CHECK(result.same);
  CHECK(result.hash == recording.hash);
  REQUIRE_OK(driver.tex_object_destroy(texture));
  REQUIRE_OK(driver.array_destroy(array));
}

TEST_CASE("bytes of 1D arrays, pitched and linear textures are recorded") {
  RecordedProgram program;
  const Table& driver = program.driver;
  program.load(kImages, "draw");
  const CUDA_ARRAY_DESCRIPTOR words{64, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
  CUarray first = nullptr;
  CUarray second = nullptr;
  REQUIRE_OK(driver.array_create(&first, &words));
  REQUIRE_OK(driver.array_create(&second, &words));
  CUdeviceptr rows = program.allocate(kBytes);
  CUdeviceptr out = program.allocate(kBytes);
  std::vector<std::uint32_t> values = counted(64);
  REQUIRE_OK(driver.memcpy_to_device(rows, values.data(), kBytes));
  REQUIRE_OK(driver.memcpy_host_to_array(first, 0, values.data(), 256));
  REQUIRE_OK(driver.memcpy_array_to_array(second, 64, first, 32, 128));
  REQUIRE_OK(driver.memcpy_array_to_device(rows, second, 64, 128));
  REQUIRE_OK(driver.memcpy_device_to_array(first, 128, rows, 64));
  REQUIRE_OK(driver.memcpy_array_to_host_async(values.data(), first, 128, 64, nullptr));
  REQUIRE_OK(driver.memcpy_host_to_array_async(second, 0, values.data(), 64, nullptr));
  REQUIRE_OK(driver.memcpy_array_to_host(values.data(), second, 0, 64));
  CHECK(values[0] == 8);
  CUDA_RESOURCE_DESC pitched{};
  pitched.resType = CU_RESOURCE_TYPE_PITCH2D;
  pitched.res.pitch2D = {rows, CU_AD_FORMAT_UNSIGNED_INT32, 1, kWidth, kHeight, 4 * kWidth};
  CUDA_RESOURCE_DESC linear{};
  linear.resType = CU_RESOURCE_TYPE_LINEAR;
  linear.res.linear = {rows, CU_AD_FORMAT_UNSIGNED_INT32, 1, kBytes};
  CUDA_TEXTURE_DESC points{};
  points.flags = kTextureAsInteger;
  const CUDA_RESOURCE_VIEW_DESC own{
      CU_RES_VIEW_FORMAT_UINT_1X32, kWidth, kHeight, 0, 0, 0, 0, 0, {}};
  CUtexObject texture = 0;
  CUtexObject unused = 0;
  REQUIRE_OK(driver.tex_object_create(&texture, &pitched, &points, &own));
  REQUIRE_OK(driver.tex_object_create(&unused, &linear, &points, nullptr));
  launch_rows(program, "sample", {&texture, &out});
  CHECK(program.read(out, 10)[9] == 17);
  const Recording recording = program.finish();
  CHECK(recording.notes.empty());
  CHECK(count_of<ObjectStep>(recording) == 2);
  const Replay result = replayed_program(parse_recording(to_json(recording), "x.json"));
  CHECK(result.same);
  CHECK(result.frames == 1);
  // Memory that has moved is found by the objects, too.
  const Replay moved = replayed_program(recording, {}, 100000);
  CHECK(moved.moved == 2);
  CHECK(moved.same);
}

TEST_CASE("a graph's copies of arrays are steps; objects made in a capture are recorded after it") {
  RecordedProgram program;
  const Table& driver = program.driver;
  program.load(kImages, "draw");
  CUarray array = create_array(program, kHeight);
  CUdeviceptr out = program.allocate(kBytes);
  CUstream stream = nullptr;
  REQUIRE_OK(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
  std::vector<std::uint32_t> values = counted(kWidth * kHeight);
  const CUDA_MEMCPY2D in = rows_of(array, values.data(), true);
  const CUDA_RESOURCE_DESC resource = resource_of(array);
  CUDA_TEXTURE_DESC points{};
  points.flags = kTextureAsInteger;
  CUtexObject texture = 0;
  CUtexObject gone = 0;
  REQUIRE_OK(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  REQUIRE_OK(driver.memcpy_2d_async(&in, stream));
  REQUIRE_OK(driver.tex_object_create(&texture, &resource, &points, nullptr));
  REQUIRE_OK(driver.tex_object_create(&gone, &resource, &points, nullptr));
  REQUIRE_OK(driver.tex_object_destroy(gone));
  CUgraph graph = nullptr;
  REQUIRE_OK(driver.stream_end_capture(stream, &graph));
  CUgraphExec executable = nullptr;
  REQUIRE_OK(driver.graph_instantiate_with_flags(&executable, graph, 0));
  REQUIRE_OK(driver.graph_launch(executable, stream));
  launch_rows(program, "sample", {&texture, &out});
  CHECK(program.read(out, 10)[9] == 9);
  const Recording recording = program.finish();
  CHECK(recording.notes.empty());
  CHECK(count_of<ObjectStep>(recording) == 1);
  CHECK(count_of<WriteStep>(recording) == 1);
  CHECK(replayed_program(recording).same);
}

TEST_CASE("arrays and objects of a context end with it") {
  RecordedProgram program;
  const Table& driver = program.driver;
  CUarray array = create_array(program, kHeight);
  const CUDA_RESOURCE_DESC resource = resource_of(array);
  const CUDA_TEXTURE_DESC points{};
  CUtexObject texture = 0;
  REQUIRE_OK(driver.tex_object_create(&texture, &resource, &points, nullptr));
  CUcontext context = nullptr;
  REQUIRE_OK(driver.ctx_get_current(&context));
  REQUIRE_OK(driver.ctx_destroy(context));
  const Recording recording = program.finish();
  REQUIRE(recording.steps.size() == 4);
  CHECK(std::get<DestroyStep>(recording.steps[2]).object == texture);
  CHECK(std::get<FreeStep>(recording.steps[3]).address == kFirstArrayAddress);
  CHECK(replayed_program(recording).same);
}

TEST_CASE("objects of arrays that are not recorded are said not to be recorded") {
  RecordedProgram program;
  program.load(kImages, "draw");
  const CUDA_ARRAY3D_DESCRIPTOR words{kWidth, kHeight,      0, CU_AD_FORMAT_UNSIGNED_INT32,
                                      1,      kArraySurface};
  CUarray array = nullptr;
  REQUIRE_OK(emulated::table().array_3d_create(&array, &words));  // the recorder does not see it
  const CUDA_RESOURCE_DESC resource = resource_of(array);
  CUsurfObject surface = 0;
  REQUIRE_OK(program.driver.surf_object_create(&surface, &resource));
  REQUIRE_OK(program.driver.surf_object_destroy(surface));
  REQUIRE_OK(program.driver.array_destroy(array));
  (void)program.allocate(4);
  const Recording recording = program.finish();
  REQUIRE(recording.notes.size() == 1);
  CHECK_THAT(recording.notes[0], Contains("a texture or surface object of memory that no recorded "
                                          "call has created is not recorded: "));
  CHECK(count_of<DestroyStep>(recording) == 0);
  CHECK(replayed_program(recording).same);
}

TEST_CASE("damaged steps of arrays and objects are refused by name") {
  const Recording good = drawn_and_sampled();
  Recording recording = good;
  first_of<AllocateStep>(recording).bytes += 4;
  CHECK_THAT(refusal_of(recording),
             Contains("an array of 8 x 6 x 0 elements of format 3 with 1 channel, with 196 bytes"));
  recording = good;
  first_of<AllocateStep>(recording).address = 4096;
  CHECK_THAT(refusal_of(recording), Contains("with 192 bytes at 0x1000"));
  recording = good;
  first_of<ObjectStep>(recording).resource.address += 4;
  CHECK_THAT(
      refusal_of(recording),
      Contains("an object of memory at 0x8000000000000004, where there is none of its kind"));
  recording = good;
  first_of<ObjectStep>(recording).resource.kind = StepResource::Kind::Linear;
  CHECK_THAT(refusal_of(recording), Contains("where there is none of its kind"));
  recording = good;
  first_of<DestroyStep>(recording).object = 77;
  CHECK_THAT(refusal_of(recording), Contains("object 77 does not exist"));
  recording = good;
  first_of<CopyStep>(recording).from.address += 4;
  first_of<CopyStep>(recording).from.height = first_of<CopyStep>(recording).to.height = 5;
  CHECK_THAT(refusal_of(recording), Contains("that are not whole elements of its rows"));
  recording = good;
  first_of<CopyStep>(recording).from.width -= 4;
  CHECK_THAT(refusal_of(recording), Contains("a copy between rows of other sizes"));
  recording = good;
  first_of<WriteStep>(recording).to.height = std::uint64_t{1} << 63;
  CHECK_THAT(refusal_of(recording), Contains("are in no memory that was allocated"));
  std::string text = to_json(good);
  text.replace(text.find("\"kind\":\"surface\""), 16, "\"kind\":\"circle\"");
  CHECK_THROWS_WITH(parse_recording(text, "x.json"), Contains("'circle' is no kind of object"));
}

TEST_CASE("a recording of arrays with any number of a step replaced is replayed or refused") {
  CHECK(refused_with_other_numbers(to_json(drawn_and_sampled())) > 10);
}
