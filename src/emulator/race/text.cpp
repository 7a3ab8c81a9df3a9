// src/emulator/race/text.cpp - texts of findings about races
#include <optional>
#include <string>

#include "emulator/race/detail.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

std::string verb(Mark mark, bool past) {
  switch (mark) {
    case Mark::WeakRead:
      return past ? "read" : "reads";
    case Mark::WeakWrite:
      return past ? "wrote" : "writes";
    case Mark::StrongRead:
      return past ? "read (volatile, relaxed or acquire)" : "reads (volatile, relaxed or acquire)";
    case Mark::StrongWrite:
      return past ? "changed (atomic, volatile or relaxed)"
                  : "changes (atomic, volatile or relaxed)";
  }
  return {};
}

std::string scope_name(ptx::Modifier scope) {
  return scope == ptx::Modifier::none ? std::string("gpu") : std::string(ptx::name(scope));
}

std::string remedy(const Conflict& conflict) {
  if (conflict.rule == Rule::ScopeTooNarrow) {
    return "use .gpu or .sys scope between threads of different blocks";
  }
  if (conflict.matrix) {
    return "wait for its group (wgmma.wait_group) in the warpgroup before its shared memory is "
           "written, and order the write after the wait (an mbarrier or bar.sync)";
  }
  if (conflict.bulk) {
    return "wait for the mbarrier of the copy in every thread that accesses the bytes, or in one "
           "thread with a bar.sync 0 after it";
  }
  if (conflict.async) {
    return "wait for the copy (cp.async.wait_group, cp.async.wait_all or its mbarrier) before "
           "accessing its bytes, and put bar.sync 0 after the wait for the other threads";
  }
  if (conflict.same_access) {
    return conflict.rule == Rule::RaceSameValue ? "let one thread write it"
                                                : "let one thread write it, or use an atomic";
  }
  if (conflict.mixed) {
    return "use one width for all atomic, volatile and relaxed accesses to these bytes: accesses "
           "that overlap only in part race like plain ones";
  }
  std::string text;
  if (is_strong(conflict.own) != is_strong(conflict.theirs)) {
    text = "make both accesses atomic or relaxed, or ";
  }
  if (!conflict.same_block && conflict.shared) {
    return text +
           "put a cluster barrier (barrier.cluster.arrive and .wait) between them, or an mbarrier "
           "at which the first arrives and for which the second waits";
  }
  if (!conflict.same_block) {
    return text +
           "put a fence.acq_rel.gpu and an atomic or relaxed flag between them (one fence before "
           "the flag is stored, one after it is read), or split the kernel into two launches";
  }
  return text + (conflict.same_warp
                     ? "put bar.warp.sync with both lanes in its mask (or bar.sync 0) between them"
                     : "put bar.sync 0 between them");
}

/// A plain read that races with an atomic or volatile write gives the old or the new value on every
/// GPU; loops around atomicCAS begin with such a read. Races on the data it guards are findings of
/// their own.
std::optional<Severity> severity_of(const Conflict& conflict) {
  const auto is = [&](Mark one, Mark other) {
    return (conflict.own == one && conflict.theirs == other) ||
           (conflict.own == other && conflict.theirs == one);
  };
  if (conflict.rule != Rule::GlobalRace || conflict.mixed) return std::nullopt;
  if (!is(Mark::WeakRead, Mark::StrongWrite)) return std::nullopt;
  return Severity::Warning;
}

/// What the other thread did, and why the two accesses race. `line`: " at line 7".
std::string other_access(const Conflict& conflict, std::string_view line) {
  const bool same_value = conflict.rule == Rule::RaceSameValue;
  if (conflict.same_access) {
    return format_text("writes with the same instruction, {} value",
                       same_value ? "the same" : "another");
  }
  const std::string access = verb(conflict.theirs, true) + std::string(line);
  if (same_value) return format_text("{}, the same value; nothing orders the two", access);
  if (conflict.matrix) {
    return format_text("{} by wgmma; the write is not ordered after a wait for its group", access);
  }
  if (conflict.bulk) {
    return format_text("{} by a bulk copy; this thread has not waited for its mbarrier", access);
  }
  if (conflict.async) {
    return format_text("{}; one of the two is an asynchronous copy that no thread has waited for",
                       access);
  }
  return format_text("{}{}; nothing orders the two", access,
                     conflict.mixed ? " with another width" : "");
}

}  // namespace

FindingText race_text(const Conflict& conflict, std::string_view thread,
                      std::string_view other_thread, std::string_view other_place,
                      std::string_view name) {
  const std::string bytes = format_text(
      "{} at {}{}{}", count_text(conflict.bytes, "byte"), conflict.shared ? "shared offset " : "",
      hex(conflict.address), name.empty() ? std::string() : format_text(" ({})", name));
  const std::string line = other_place.empty() ? std::string() : format_text(" {}", other_place);
  const std::string access = format_text("{} {} {}", thread, verb(conflict.own, false), bytes);
  if (conflict.rule == Rule::ExitedBlock) {
    return {format_text("{}; that block exited{}, and nothing orders the access before the exit",
                        access, line),
            {std::string(kSyncBeforeExit)}};
  }
  if (conflict.rule == Rule::ScopeTooNarrow) {
    return {format_text("scope .{} of {} does not include {}{}; both access {}",
                        scope_name(conflict.scope), thread, other_thread, line, bytes),
            {remedy(conflict)}};
  }
  if (conflict.vague) {
    // The shadow cell keeps only that several threads did it, and the first of them.
    return {format_text("{}, which several threads {}{}, {} the first of them; nothing orders the "
                        "two accesses",
                        access, verb(conflict.theirs, true), line, other_thread),
            {remedy(conflict)},
            {},
            severity_of(conflict)};
  }
  return {format_text("{}, which {} {}", access, other_thread, other_access(conflict, line)),
          {remedy(conflict)},
          {},
          severity_of(conflict)};
}

}  // namespace ptxgen::inline v0::emulator
