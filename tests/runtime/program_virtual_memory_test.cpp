// tests/runtime/program_virtual_memory_test.cpp - virtual memory of recorded programs
#include "recorded_program.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using namespace ptxgen::driver;
using Catch::Matchers::Contains;

namespace {

constexpr std::size_t kPage = std::size_t{2} << 20;

CUmemGenericAllocationHandle create_memory(RecordedProgram& program, std::size_t bytes) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemGenericAllocationHandle handle = 0;
  REQUIRE_OK(program.driver.mem_create(&handle, bytes, &properties, 0));
  return handle;
}

CUdeviceptr reserve(RecordedProgram& program, std::size_t bytes) {
  CUdeviceptr address = 0;
  REQUIRE_OK(program.driver.mem_address_reserve(&address, bytes, 0, 0, 0));
  return address;
}

void allow(RecordedProgram& program, CUdeviceptr address, std::size_t bytes,
           CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, flags};
  REQUIRE_OK(program.driver.mem_set_access(address, bytes, &access, 1));
}

/// Two mappings, work at their border, and the second one's memory at another address.
Recording at_a_border() {
  RecordedProgram program;
  const Table& driver = program.driver;
  program.load();
  const CUdeviceptr start = reserve(program, 4 * kPage);
  const CUmemGenericAllocationHandle first = create_memory(program, kPage);
  const CUmemGenericAllocationHandle second = create_memory(program, kPage);
  REQUIRE_OK(driver.mem_map(start, kPage, 0, first, 0));
  REQUIRE_OK(driver.mem_map(start + kPage, kPage, 0, second, 0));
  allow(program, start, 2 * kPage);
  const CUdeviceptr border = start + kPage - 32;
  REQUIRE_OK(driver.memset_d32(border - 32, 7, 32));
  program.write(border, counted(16));
  program.scale(border, 1);
  const CUdeviceptr other = program.allocate(64);
  REQUIRE_OK(driver.memcpy_within_device(other, border, 64));
  CHECK(program.read(border, 16)[15] == 15 * 3 + 1);
  CHECK(program.read(other, 16)[15] == 15 * 3 + 1);
  // Released while it is mapped; the mapping gives it back.
  REQUIRE_OK(driver.mem_release(second));
  CUmemGenericAllocationHandle same = 0;
  REQUIRE_OK(driver.mem_retain_allocation_handle(
      &same, reinterpret_cast<void*>(static_cast<std::uintptr_t>(start + kPage))));
  REQUIRE_OK(driver.mem_unmap(start + kPage, kPage));
  REQUIRE_OK(driver.mem_map(start + 3 * kPage, kPage, 0, same, 0));
  allow(program, start + 3 * kPage, kPage);
  program.scale(start + 3 * kPage, 2, 8);
  CHECK(program.read(start + 3 * kPage, 1)[0] == (8 * 3 + 1) * 3 + 2);
  REQUIRE_OK(driver.mem_unmap(start, kPage));
  REQUIRE_OK(driver.mem_unmap(start + 3 * kPage, kPage));
  REQUIRE_OK(driver.mem_release(same));
  REQUIRE_OK(driver.mem_release(first));
  REQUIRE_OK(driver.mem_address_free(start, 4 * kPage));
  return program.finish();
}

std::size_t calls_of(const Recording& recording, VirtualStep::Kind kind) {
  return static_cast<std::size_t>(std::ranges::count_if(recording.steps, [&](const Step& step) {
    const auto* const call = std::get_if<VirtualStep>(&step);
    return call != nullptr && call->kind == kind;
  }));
}

VirtualStep& call_in(Recording& recording, VirtualStep::Kind kind) {
  for (Step& step : recording.steps) {
    auto* const call = std::get_if<VirtualStep>(&step);
    if (call != nullptr && call->kind == kind) return *call;
  }
  throw std::out_of_range("no such call");
}

}  // namespace

TEST_CASE("virtual memory is recorded by its calls, and copies by the mappings they are in") {
  using Kind = VirtualStep::Kind;
  const Recording recording = at_a_border();
  CHECK(recording.notes.empty());
  CHECK(calls_of(recording, Kind::Reserve) == 1);
  CHECK(calls_of(recording, Kind::Create) == 2);
  CHECK(calls_of(recording, Kind::Map) == 3);
  CHECK(calls_of(recording, Kind::Access) == 2);
  CHECK(calls_of(recording, Kind::Unmap) == 3);
  CHECK(calls_of(recording, Kind::Release) == 2);
  CHECK(calls_of(recording, Kind::Unreserve) == 1);
  // On both sides of the border.
  CHECK(count_of<FillStep>(recording) == 2);
  CHECK(count_of<WriteStep>(recording) == 2);
  CHECK(count_of<CopyStep>(recording) == 2);
  CHECK(count_of<ReadStep>(recording) == 4);
  CHECK(launch_number(recording, 0).outputs.size() == 3);  // and the counter
  const Recording read = parse_recording(to_json(recording), "x.json");
  CHECK(to_json(read) == to_json(recording));
  const Replay result = replayed_program(read);
  CHECK(result.same);
  CHECK(result.frames == 2);
  CHECK(result.hash == recording.hash);
  CHECK(result.moved == 0);
  const Replay moved = replayed_program(recording, {}, 3 * kPage);
  CHECK(moved.moved >= 3);
  CHECK(moved.same);
}

TEST_CASE("a mapping without access is no memory until it has access again") {
  RecordedProgram program;
  const Table& driver = program.driver;
  program.load();
  const CUdeviceptr start = reserve(program, kPage);
  const CUmemGenericAllocationHandle handle = create_memory(program, kPage);
  REQUIRE_OK(driver.mem_map(start, kPage, 0, handle, 0));
  allow(program, start, kPage);
  program.write(start, counted(16));
  allow(program, start, kPage, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  const CUdeviceptr data = program.allocate(64);
  program.write(data, counted(16));
  program.scale(data, 1);
  allow(program, start, kPage, CU_MEM_ACCESS_FLAGS_PROT_READ);
  allow(program, start, kPage);
  program.scale(start, 1);
  CHECK(program.read(start, 4)[3] == 10);
  // The end of the context is that of its mappings.
  CUcontext context = nullptr;
  REQUIRE_OK(driver.ctx_get_current(&context));
  REQUIRE_OK(driver.ctx_destroy(context));
  const Recording recording = program.finish();
  CHECK(recording.notes.empty());
  CHECK(calls_of(recording, VirtualStep::Kind::Access) == 4);
  CHECK(calls_of(recording, VirtualStep::Kind::Unmap) == 1);
  CHECK(calls_of(recording, VirtualStep::Kind::Unreserve) == 1);
  CHECK(replayed_program(recording).same);
}

TEST_CASE("mappings in addresses that are not recorded are said not to be recorded") {
  RecordedProgram program;
  const Table& driver = program.driver;
  program.load();
  CUdeviceptr start = 0;
  REQUIRE_OK(emulated::table().mem_address_reserve(&start, kPage, 0, 0, 0));  // not seen
  const CUmemGenericAllocationHandle handle = create_memory(program, kPage);
  REQUIRE_OK(driver.mem_map(start, kPage, 0, handle, 0));
  allow(program, start, kPage);
  program.write(start, counted(16));
  const Recording recording = program.finish();
  REQUIRE(recording.notes.size() == 2);
  CHECK(recording.notes[0] ==
        "virtual memory (cuMemMap) of a handle or at addresses that no recorded call created is "
        "not recorded");
  CHECK(recording.notes[1] ==
        "a copy or fill of memory that no recorded call has allocated is not recorded");
  CHECK(replayed_program(recording).same);
}

TEST_CASE("damaged steps of virtual memory are refused by name") {
  using Kind = VirtualStep::Kind;
  const Recording good = at_a_border();
  Recording recording = good;
  call_in(recording, Kind::Map).handle = 9;
  CHECK_THAT(refusal_of(recording), Contains("memory handle 9 does not exist"));
  recording = good;
  call_in(recording, Kind::Map).address += 8 * kPage;
  CHECK_THAT(refusal_of(recording), Contains("2097152 bytes at "));
  CHECK_THAT(refusal_of(recording), Contains(" are in no reservation"));
  recording = good;
  call_in(recording, Kind::Create).handle = 1;
  CHECK_THAT(refusal_of(recording), Contains("memory handle 1 exists already"));
  recording = good;
  call_in(recording, Kind::Create).bytes = std::uint64_t{1} << 62;
  CHECK_THAT(refusal_of(recording), Contains("cuMemCreate: "));
  recording = good;
  recording.steps.insert(recording.steps.begin() + 2, Step(call_in(recording, Kind::Reserve)));
  CHECK_THAT(refusal_of(recording), Contains(" on are reserved already"));
  recording = good;
  call_in(recording, Kind::Access).bytes = 4096;
  CHECK_THAT(refusal_of(recording), Contains("cuMemSetAccess: "));
}

TEST_CASE(
    "a recording of virtual memory with any number of a step replaced is replayed or refused") {
  CHECK(refused_with_other_numbers(to_json(at_a_border()), 40) > 1);
}
