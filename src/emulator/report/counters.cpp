// src/emulator/report/counters.cpp - sums the counters of workers for a launch
#include "emulator/report/counting.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "ptxgen/ptx/printer.hpp"

namespace ptxgen::inline v0::emulator {

void add(MemoryCounters& to, const MemoryCounters& from) {
  to.requests += from.requests;
  to.sectors += from.sectors;
  to.ideal_sectors += from.ideal_sectors;
  to.bytes += from.bytes;
}

void add(SharedCounters& to, const SharedCounters& from) {
  to.requests += from.requests;
  to.wavefronts += from.wavefronts;
  to.ideal_wavefronts += from.ideal_wavefronts;
  to.bank_conflicts += from.bank_conflicts;
  to.bytes += from.bytes;
}

void add(BulkCounters& to, const BulkCounters& from) {
  to.copies += from.copies;
  to.bytes += from.bytes;
  to.sectors += from.sectors;
}

void add(PeerCounters& to, const PeerCounters& from) {
  to.requests += from.requests;
  to.bytes += from.bytes;
}

void add_totals(Counters& to, const Counters& from) {
  to.warp_instructions += from.warp_instructions;
  to.thread_instructions += from.thread_instructions;
  to.branches += from.branches;
  to.divergent_branches += from.divergent_branches;
  to.barriers += from.barriers;
  to.atomics += from.atomics;
  add(to.global_load, from.global_load);
  add(to.global_store, from.global_store);
  add(to.local_load, from.local_load);
  add(to.local_store, from.local_store);
  add(to.shared_load, from.shared_load);
  add(to.shared_store, from.shared_store);
  add(to.bulk_load, from.bulk_load);
  add(to.bulk_store, from.bulk_store);
  add(to.bulk_peer, from.bulk_peer);
  add(to.peer_load, from.peer_load);
  add(to.peer_store, from.peer_store);
}

namespace {

/// cp.async reads global and writes shared memory. Atomics, which also do both, count as stores.
bool copies_to_shared(const ptx::Instruction& s) {
  return s.is(ptx::Op::cp_async) || s.is(ptx::Op::cp_async_src_size) ||
         s.is(ptx::Op::cp_async_ignore_src);
}

/// The counter group of a bulk copy, by its source and destination.
BulkCounters& bulk_of(Counters& all, const ptx::Instruction& statement) {
  if (ptx::space_of(statement.get(ptx::Field::Space)) == ptx::Space::Global) return all.bulk_store;
  const bool from_global = statement.get(ptx::Field::SourceSpace) == ptx::Modifier::global;
  return from_global ? all.bulk_load : all.bulk_peer;
}

/// The printed opcode of a statement: "ld.global.v4.f32".
std::string opcode_of(const ptx::Module& module, const ptx::Function& function,
                      const ptx::Instruction& statement) {
  std::string text = ptx::print(module, function, statement);
  if (text.starts_with('@')) text.erase(0, text.find_first_of(" \t") + 1);
  return text.substr(0, text.find_first_of(" \t;"));
}

/// Adds up the counters of all workers, function by function.
class Collector {
 public:
  Collector(const Image& image, std::span<const Worker> workers)
      : image_(image), workers_(workers), lines_(image.module.functions.size()) {}

  void add_code(const Code& code) {
    for (std::uint32_t s = 0; s < code.segments.size(); ++s) add_segment(code, s);
    for (const MemoryDetail& detail : code.memory) {
      if (detail.counter != kNoIndex) add_accesses(detail);
    }
    for (std::uint32_t i = 0; i < code.function->body.size(); ++i) {
      Line& line = lines_of(*code.function)[i];
      if (line.statement == nullptr) continue;
      for (const Worker& worker : workers_) {
        line.counters.predicated_on -= worker.predicated_off[code.first_statement + i];
      }
    }
  }

  [[nodiscard]] Counters take() {
    for (const Worker& worker : workers_) all_.barriers += worker.barriers;
    std::map<std::string_view, std::uint64_t> opcodes;
    for (std::size_t op = 0; op < opcodes_.size(); ++op) {
      if (opcodes_[op] > 0) opcodes[ptx::info(static_cast<ptx::Op>(op)).mnemonic] += opcodes_[op];
    }
    for (const auto& [mnemonic, executions] : opcodes) {
      all_.opcodes.push_back({std::string(mnemonic), executions});
    }
    // A launch of a model has its peak memory here: nothing grows, and lines are there once.
    all_.lines.reserve(executed_lines());
    for (std::size_t f = 0; f < lines_.size(); ++f) {
      const ptx::Function& function = image_.module.functions[f];
      for (Line& line : std::exchange(lines_[f], {})) {
        if (line.statement == nullptr) continue;
        line.counters.line = line.statement->line;
        line.counters.opcode = opcode_of(image_.module, function, *line.statement);
        line.counters.function = std::string(image_.module.text(function.name));
        all_.lines.push_back(std::move(line.counters));
      }
    }
    std::ranges::stable_sort(all_.lines, {}, &LineCounters::line);
    return std::move(all_);
  }

 private:
  struct Line {
    const ptx::Instruction* statement = nullptr;  ///< null: not executed, and no access
    LineCounters counters;
  };

  [[nodiscard]] std::size_t executed_lines() const {
    std::size_t count = 0;
    for (const std::vector<Line>& lines : lines_) {
      count += static_cast<std::size_t>(
          std::ranges::count_if(lines, [](const Line& line) { return line.statement != nullptr; }));
    }
    return count;
  }

  /// By statement.
  std::vector<Line>& lines_of(const ptx::Function& function) {
    std::vector<Line>& lines =
        lines_[static_cast<std::size_t>(&function - image_.module.functions.data())];
    lines.resize(function.body.size());
    return lines;
  }

  LineCounters& line_of(const ptx::Function& function, const ptx::Instruction& statement) {
    Line& line = lines_of(function)[static_cast<std::size_t>(&statement - function.body.data())];
    line.statement = &statement;
    return line.counters;
  }

  void add_segment(const Code& code, std::uint32_t index) {
    const Segment& segment = code.segments[index];
    std::uint64_t executions = 0;
    std::uint64_t lanes = 0;
    std::uint64_t divergent = 0;
    for (const Worker& worker : workers_) {
      executions += worker.segment_executions[code.first_segment + index];
      lanes += worker.segment_lanes[code.first_segment + index];
      divergent += worker.branch_divergent[code.first_segment + index];
    }
    all_.warp_instructions += executions * segment.instructions;
    all_.thread_instructions += lanes * segment.instructions;
    for (std::uint32_t i = 0; i < segment.instructions; ++i) {
      const std::uint32_t number = code.segment_statements[segment.first_statement + i];
      const ptx::Instruction& statement = code.function->body[number];
      const ptx::OpInfo& row = ptx::info(statement.op);
      const auto op = static_cast<std::size_t>(statement.op);
      if (op >= opcodes_.size()) opcodes_.resize(op + 1);
      opcodes_[op] += executions;
      LineCounters& line = line_of(*code.function, statement);
      line.executions += executions;
      line.thread_executions += lanes;
      line.predicated_on += lanes;
      if (ptx::has(row.flags, ptx::Flag::Branch)) {
        all_.branches += executions;
        all_.divergent_branches += divergent;
        line.divergent += divergent;
      }
      if (row.mnemonic == "atom" || row.mnemonic == "red") all_.atomics += executions;
    }
  }

  void add_accesses(const MemoryDetail& detail) {
    AccessCounters sum;
    for (const Worker& worker : workers_) {
      const AccessCounters& part = worker.memory_counters[detail.counter];
      add(sum.memory, part.memory);
      add(sum.local, part.local);
      add(sum.shared, part.shared);
      add(sum.bulk, part.bulk);
      add(sum.peer, part.peer);
    }
    const Image::Place place = image_.place(detail.statement);
    const bool stores = detail.writes && !copies_to_shared(*place.statement);
    add(stores ? all_.global_store : all_.global_load, sum.memory);
    add(detail.writes ? all_.local_store : all_.local_load, sum.local);
    add(detail.writes ? all_.shared_store : all_.shared_load, sum.shared);
    add(detail.writes ? all_.peer_store : all_.peer_load, sum.peer);
    if (sum.bulk.copies != 0) add(bulk_of(all_, *place.statement), sum.bulk);
    LineCounters& line = line_of(*place.function, *place.statement);
    add(line.bulk, sum.bulk);
    add(line.peer, sum.peer);
    add(line.memory, sum.memory);
    add(line.memory, sum.local);
    add(line.shared, sum.shared);
  }

  const Image& image_;
  std::span<const Worker> workers_;
  Counters all_;
  std::vector<std::uint64_t> opcodes_;    ///< by ptx::Op
  std::vector<std::vector<Line>> lines_;  ///< by function
};

}  // namespace

double Counters::warp_execution_efficiency() const noexcept {
  if (warp_instructions == 0) return 0;
  return static_cast<double>(thread_instructions) / (32.0 * static_cast<double>(warp_instructions));
}

double Counters::coalescing_efficiency(const MemoryCounters& group) noexcept {
  if (group.sectors == 0) return 1;
  return static_cast<double>(group.ideal_sectors) / static_cast<double>(group.sectors);
}

Counters collect(const Image& image, std::uint32_t kernel, std::span<const Worker> workers) {
  Collector collector(image, workers);
  for (const auto& code : image.codes) {
    if (code->kernel == kernel) collector.add_code(*code);
  }
  return collector.take();
}

}  // namespace ptxgen::inline v0::emulator
