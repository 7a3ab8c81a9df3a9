// src/runtime/recording/program_replay.cpp - a recorded program, run again step by step
#include "runtime/recording/program_replay.hpp"

#include <algorithm>
#include <cstring>

#include "driver/recorder/repeat.hpp"
#include "runtime/recording/outputs.hpp"
#include "runtime/recording/program_json.hpp"
#include "runtime/recording/program_run.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::replayed {

ProgramRun::~ProgramRun() {
  for (const auto& [object, handle] : objects_) {
    (void)(object.first ? table_.surf_object_destroy : table_.tex_object_destroy)(handle);
  }
  for (const auto& [number, module] : modules_) (void)table_.module_unload(module.handle);
  for (const auto& [address, placed] : memory_) release(placed);
  for (const auto& [recorded, one] : graph_memory_) {
    (void)table_.graph_exec_destroy(one.executable);
    (void)table_.graph_destroy(one.graph);
  }
  for (const auto& [address, bytes] : mappings_) (void)table_.mem_unmap(address, bytes);
  for (const auto& [number, handle] : handles_) (void)table_.mem_release(handle);
  for (const auto& [recorded, one] : reservations_) {
    (void)table_.mem_address_free(one.address, static_cast<std::size_t>(one.bytes));
  }
}

Error ProgramRun::bad(const std::string& what) const {
  return Error(Stage::Launch, "bad-recording", format_text("recording: step {}: {}", step_, what));
}

void ProgramRun::check(CUresult result, const char* call) const {
  if (result == CUDA_SUCCESS) return;
  throw Error(Stage::Launch, "not-replayed",
              format_text("recording: step {}: {}: {}", step_, call, result_text(table_, result)));
}

const std::vector<std::byte>& ProgramRun::content(const std::string& hash) const {
  const std::vector<std::byte>* const found = find_content(recording_, hash);
  if (found == nullptr) throw bad(format_text("it has no content {}", hash));
  return *found;
}

std::map<std::uint64_t, Placed>::const_iterator ProgramRun::find(std::uint64_t address) const {
  return entry_at(memory_, address);
}

namespace {

/// The bytes from the first to the last of rows. False if rows overlap, which no copy has, or are
/// beyond all addresses.
bool end_of(const StepRows& rows, std::uint64_t& end) {
  end = rows.width;
  if (rows.width == 0 || rows.height == 0 || rows.depth == 0) return true;
  if ((rows.height > 1 || rows.depth > 1) && rows.pitch < rows.width) return false;
  if (rows.depth > 1 && rows.slice_height < rows.height) return false;
  std::uint64_t last = 0;
  return !__builtin_mul_overflow(rows.depth - 1, rows.slice_height, &last) &&
         !__builtin_add_overflow(last, rows.height - 1, &last) &&
         !__builtin_mul_overflow(last, rows.pitch, &last) &&
         !__builtin_add_overflow(last, rows.width, &end);
}

}  // namespace

StepRows ProgramRun::now(const StepRows& recorded) const {
  const auto found = find(recorded.address);
  std::uint64_t end = 0;
  if (!end_of(recorded, end) || found == memory_.end() ||
      end > found->second.bytes - (recorded.address - found->first)) {
    throw bad(format_text("{} x {} x {} bytes at {:#x} are in no memory that was allocated",
                          recorded.width, recorded.height, recorded.depth, recorded.address));
  }
  StepRows moved = recorded;
  moved.address = found->second.address + (recorded.address - found->first);
  return moved;
}

void ProgramRun::write_rows(const StepRows& to, std::span<const std::byte> packed) {
  if (packed.size() != to.width * to.height * to.depth) {
    throw bad(format_text("content of {} for rows of {}", count_text(packed.size(), "byte"),
                          to.width * to.height * to.depth));
  }
  const Region* const region = shadow_.find(to.address);
  if (region != nullptr && region->is_array()) return write_array(*region, to, packed);
  for (std::uint64_t z = 0; z < to.depth; ++z) {
    for (std::uint64_t y = 0; y < to.height; ++y) {
      const auto row = packed.first(static_cast<std::size_t>(to.width));
      check(table_.memcpy_to_device(to.address + (z * to.slice_height + y) * to.pitch, row.data(),
                                    row.size()),
            "cuMemcpyHtoD");
      packed = packed.subspan(row.size());
    }
  }
  refresh(to, "cuMemcpyDtoH");
}

// In a graph all that changes is compared at its end.
void ProgramRun::refresh(const StepRows& rows, const char* call) {
  if (!in_graph_) check(shadow_.refresh(rows), call);
}

std::vector<std::byte> ProgramRun::read_rows(const StepRows& from) const {
  std::vector<std::byte> packed(static_cast<std::size_t>(from.width * from.height * from.depth));
  std::byte* to = packed.data();
  std::vector<std::byte> all;
  const Region* const region = shadow_.find(from.address);
  if (region != nullptr && region->is_array()) {
    all.resize(region->seen.size());
    check(recorder::read_image(table_, region->array, all.data()), "cuMemcpy3D");
  }
  for (std::uint64_t z = 0; z < from.depth; ++z) {
    for (std::uint64_t y = 0; y < from.height; ++y, to += from.width) {
      const std::uint64_t row = from.address + (z * from.slice_height + y) * from.pitch;
      const auto bytes = static_cast<std::size_t>(from.width);
      if (all.empty()) {
        check(table_.memcpy_to_host(to, row, bytes), "cuMemcpyDtoH");
      } else {
        std::memcpy(to, all.data() + (row - region->address), bytes);
      }
    }
  }
  return packed;
}

CUfunction ProgramRun::function(std::uint64_t module, const std::string& kernel) const {
  const auto found = modules_.find(module);
  if (found == modules_.end()) {
    throw bad(format_text("kernel {} is in module {}, which is not loaded", kernel, module));
  }
  CUfunction function = nullptr;
  check(table_.module_get_function(&function, found->second.handle, kernel.c_str()),
        "cuModuleGetFunction");
  return function;
}

// An integer that is an address or a handle by chance becomes another one where that has changed.
std::vector<std::byte> ProgramRun::arguments(const LaunchStep& step) const {
  std::vector<std::byte> block = step.arguments;
  for (std::size_t at = 0; at + 8 <= block.size() && result_.moved != 0; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, block.data() + at, sizeof word);
    const auto found = find(word);
    if (found != memory_.end()) {
      word = found->second.address + (word - found->first);
    } else if (const auto texture = objects_.find({false, word}); texture != objects_.end()) {
      word = texture->second;
    } else if (const auto surface = objects_.find({true, word}); surface != objects_.end()) {
      word = surface->second;
    } else if (const auto range = entry_at(reservations_, word); range != reservations_.end()) {
      word = range->second.address + (word - range->first);
    }
    std::memcpy(block.data() + at, &word, sizeof word);
  }
  return block;
}

// Rows that begin at an address of this process.
CopyPlace ProgramRun::place_of(const StepRows& rows) const {
  CopyPlace place;
  place.kind = CU_MEMORYTYPE_DEVICE;
  place.rows = rows;
  const Region* const region = shadow_.find(rows.address);
  if (region == nullptr || !region->is_array()) return place;
  if (!recorder::place_in(region->array, rows.address - region->address, rows, place)) {
    throw bad(
        format_text("a copy of bytes of {} that are not whole elements of its rows", region->name));
  }
  return place;
}

// The steps --------------------------------------------------------------------------------------

void ProgramRun::operator()(const LoadStep& step) {
  const std::vector<std::byte>& bytes = content(step.ptx);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (modules_.count(step.module) != 0) {
    throw bad(format_text("module {} is loaded already", step.module));
  }
  Module module;
  check(table_.module_load_data_ex(&module.handle, text.c_str(), 0, nullptr, nullptr),
        "cuModuleLoadDataEx");
  Module& kept = modules_[step.module] = module;
  for (const StepVariable& variable : step.variables) {
    Placed placed{variable.bytes, 0, StepMemory::Device, nullptr, true, {}};
    std::size_t found = 0;
    check(table_.module_get_global(&placed.address, &found, kept.handle, variable.name.c_str()),
          "cuModuleGetGlobal");
    if (found != variable.bytes) {
      throw bad(format_text("variable {} has {} here, and had {}", variable.name,
                            count_text(found, "byte"), variable.bytes));
    }
    check_new(variable.address, variable.bytes);
    if (shadow_.find(placed.address) != nullptr) {
      throw bad(format_text("variable {} is there twice", variable.name));
    }
    kept.variables.push_back(variable.address);
    place(variable.address, placed);
  }
}

void ProgramRun::operator()(const UnloadStep& step) {
  const auto found = modules_.find(step.module);
  if (found == modules_.end()) throw bad(format_text("module {} is not loaded", step.module));
  for (const std::uint64_t address : found->second.variables) {
    shadow_.remove(memory_[address].address);
    memory_.erase(address);
  }
  check(table_.module_unload(found->second.handle), "cuModuleUnload");
  modules_.erase(found);
}

void ProgramRun::operator()(const WriteStep& step) {
  write_rows(now(step.to), content(step.content));
}

void ProgramRun::operator()(const CopyStep& step) {
  const StepRows to = now(step.to);
  const StepRows from = now(step.from);
  if (to.width != from.width || to.height != from.height || to.depth != from.depth) {
    throw bad("a copy between rows of other sizes");
  }
  const CopyPlace to_place = place_of(to);
  const CopyPlace from_place = place_of(from);
  if (to_place.array != nullptr || from_place.array != nullptr) {
    const CUDA_MEMCPY3D copy = recorder::copy_between(to_place, from_place);
    check(table_.memcpy_3d(&copy), "cuMemcpy3D");
    refresh(to, "cuMemcpy3D");
    return;
  }
  for (std::uint64_t z = 0; z < to.depth; ++z) {
    for (std::uint64_t y = 0; y < to.height; ++y) {
      check(table_.memcpy_within_device(to.address + (z * to.slice_height + y) * to.pitch,
                                        from.address + (z * from.slice_height + y) * from.pitch,
                                        static_cast<std::size_t>(to.width)),
            "cuMemcpyDtoD");
    }
  }
  check(table_.ctx_synchronize(), "cuCtxSynchronize");
  refresh(to, "cuMemcpyDtoH");
}

void ProgramRun::operator()(const FillStep& step) {
  FillStep here = step;
  here.to = now(step.to);
  check(recorder::repeat_fill(table_, here, nullptr), "cuMemsetD8Async");
  check(table_.ctx_synchronize(), "cuCtxSynchronize");
  refresh(here.to, "cuMemcpyDtoH");
}

void ProgramRun::operator()(const ReadStep& step) {
  const std::string found = hash_text(read_rows(now(step.from)));
  if (found == step.hash || result_.first) return;
  Divergence divergence;
  divergence.frame = hashes_.size();
  divergence.expected = step.hash;
  divergence.found = found;
  const auto placed = find(step.from.address);
  divergence.buffer = recording_.buffers[buffers_[placed->first]].name;
  divergence.offset = step.from.address - placed->first;
  result_.first = divergence;
}

void ProgramRun::operator()(const AttributeStep& step) {
  check(table_.func_set_attribute(function(step.module, step.kernel),
                                  static_cast<CUfunction_attribute>(step.attribute), step.value),
        "cuFuncSetAttribute");
}

void ProgramRun::operator()(const LimitStep& step) {
  if (table_.ctx_set_limit == nullptr) return;
  check(
      table_.ctx_set_limit(static_cast<CUlimit>(step.limit), static_cast<std::size_t>(step.value)),
      "cuCtxSetLimit");
}

// Launches ---------------------------------------------------------------------------------------

void ProgramRun::flip() {
  if (!options_.flip || options_.flip->frame != hashes_.size()) return;
  for (const auto& [address, placed] : memory_) {
    if (buffers_[address] != options_.flip->buffer) continue;
    const CUdeviceptr at = placed.address + options_.flip->bit / 8;
    std::byte byte = read_rows({at, 1, 1, 1, 1, 1}).front();
    byte ^= std::byte{1} << (options_.flip->bit % 8);
    write_rows({at, 1, 1, 1, 1, 1}, {&byte, 1});
    return;
  }
  throw bad(
      format_text("buffer {} is not allocated at launch {}, where a bit of it is to be "
                  "inverted",
                  recording_.buffers[options_.flip->buffer].name, hashes_.size()));
}

void ProgramRun::operator()(const LaunchStep& step) {
  if (!in_graph_) flip();
  check(recorder::repeat_launch(table_, function(step.module, step.kernel), step, arguments(step),
                                nullptr),
        "cuLaunchKernel");
  const CUresult result = table_.stream_synchronize(nullptr);
  if (result != CUDA_SUCCESS) {
    result_.failure = "device-fault: " + result_name(result);
    stopped_ = true;
    return;
  }
  if (in_graph_) return;
  compare(step.outputs, step.kernel);
  stopped_ = !step.failure.empty() || hashes_.size() > options_.last_launch;
}

void ProgramRun::operator()(const BeginGraphStep&) {
  if (in_graph_) throw bad("a graph within a graph");
  flip();
  in_graph_ = true;
}

void ProgramRun::operator()(const EndGraphStep& step) {
  if (!in_graph_) throw bad("the end of a graph that has not begun");
  in_graph_ = false;
  compare(step.outputs, "graph");
  stopped_ = !step.failure.empty() || hashes_.size() > options_.last_launch;
}

// Each region that a launch changed, now or when it was recorded.
void ProgramRun::compare(const std::vector<StepOutput>& recorded_outputs, const std::string& name) {
  std::vector<Change> changes;
  check(shadow_.look(false, changes), "cuMemcpyDtoH");
  std::vector<StepOutput> outputs;
  Divergence divergence;
  for (const auto& memory : memory_) {
    // Lambdas do not take structured bindings (clang 14).
    const auto recorded = memory.first;
    const auto& placed = memory.second;
    const Region& region = *shadow_.find(placed.address);
    const auto found = std::ranges::find(changes, &region, &Change::region);
    const Change* const change = found == changes.end() ? nullptr : &*found;
    const auto before = std::ranges::find_if(recorded_outputs, [&](const StepOutput& one) {
      return one.address - recorded < placed.bytes;
    });
    const StepOutput* const output = before == recorded_outputs.end() ? nullptr : &*before;
    if (change != nullptr) {
      outputs.push_back(
          {recorded + change->begin, change->end - change->begin, hash_text(change->bytes())});
    }
    const bool same = change == nullptr
                          ? output == nullptr
                          : output != nullptr && output->address == outputs.back().address &&
                                output->bytes == outputs.back().bytes &&
                                output->hash == outputs.back().hash;
    if (same || !divergence.buffer.empty()) continue;
    divergence.buffer = recording_.buffers[buffers_[recorded]].name;
    if (output != nullptr) {
      divergence.expected = output->hash;
      divergence.was_first = output->address - recorded;
      divergence.was_end = divergence.was_first + output->bytes;
    }
    if (change != nullptr) divergence.found = outputs.back().hash;
    compare_region(region, output, change, divergence);
  }
  divergence.frame = hashes_.size();
  divergence.kernel = name;
  hashes_.push_back(to_hex(hash128(text_of_outputs(outputs))));
  if (divergence.buffer.empty()) return;
  ++result_.differing_launches;
  if (!result_.first) result_.first = std::move(divergence);
}

// Bytes outside of what the launch changed are as before it, in the recording, too.
void ProgramRun::compare_region(const Region& region, const StepOutput* recorded,
                                const Change* found, Divergence& divergence) const {
  if (found != nullptr) {
    divergence.first = found->begin;
    divergence.end = found->end;
  }
  std::vector<std::byte> expected = region.seen;
  if (found != nullptr) {
    std::ranges::copy(found->before, expected.begin() + static_cast<std::ptrdiff_t>(found->begin));
  }
  if (recorded != nullptr) {
    const std::vector<std::byte>* const kept = find_content(recording_, recorded->hash);
    const bool fits =
        kept != nullptr && kept->size() == recorded->bytes && divergence.was_end <= expected.size();
    if (!fits) return;
    std::ranges::copy(*kept, expected.begin() + static_cast<std::ptrdiff_t>(divergence.was_first));
  }
  for (std::size_t i = expected.size(); i-- > 0;) {
    if (expected[i] == region.seen[i]) continue;
    ++divergence.differing;
    divergence.offset = i;
    divergence.expected_byte = expected[i];
    divergence.found_byte = region.seen[i];
  }
}

Replay ProgramRun::run() {
  for (step_ = 0; step_ < recording_.steps.size() && !stopped_; ++step_) {
    std::visit(*this, recording_.steps[step_]);
  }
  result_.frames = hashes_.size();
  result_.hash = hash_of(hashes_);
  const bool all = hashes_.size() == recording_.frame_hashes.size() || stopped_;
  const bool cut = options_.last_launch < recording_.frame_hashes.size();
  const std::string_view expected = cut ? std::string_view() : recording_.failure;
  const auto kind = [](std::string_view failure) { return failure.substr(0, failure.find(':')); };
  result_.same = all && !result_.first && kind(result_.failure) == kind(expected);
  return std::move(result_);
}

}  // namespace ptxgen::inline v0::driver::replayed

namespace ptxgen::inline v0 {

namespace {

std::string range_text(std::uint64_t first, std::uint64_t end) {
  return first == end ? std::string("nothing") : format_text("bytes {} to {}", first, end - 1);
}

}  // namespace

Replay replay_program(const Context& context, const Recording& recording,
                      const ReplayOptions& options) {
  return driver::replayed::ProgramRun(context, recording, options).run();
}

std::string program_text_of(const Divergence& divergence) {
  if (divergence.kernel.empty()) {
    return format_text(
        "after {}: the program reads other bytes of {}, from byte {}: their hash is {}, and was {}",
        count_text(divergence.frame, "launch"), divergence.buffer, divergence.offset,
        divergence.found, divergence.expected);
  }
  std::string text = format_text("launch {} ({}): ", divergence.frame, divergence.kernel);
  if (divergence.differing != 0) {
    return text + format_text("{} of {} {}, the first is byte {}: {:02x}, and was {:02x}",
                              count_text(divergence.differing, "byte"), divergence.buffer,
                              count_verb(divergence.differing, "differs", "differ"),
                              divergence.offset, std::to_integer<unsigned>(divergence.found_byte),
                              std::to_integer<unsigned>(divergence.expected_byte));
  }
  return text + format_text(
                    "it changes {} of {} (hash {}), and changed {} (hash {}); the recording "
                    "has no more than their hash",
                    range_text(divergence.first, divergence.end), divergence.buffer,
                    divergence.found.empty() ? "none" : divergence.found,
                    range_text(divergence.was_first, divergence.was_end),
                    divergence.expected.empty() ? "none" : divergence.expected);
}

}  // namespace ptxgen::inline v0
