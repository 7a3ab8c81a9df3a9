// src/check/barrier_safety/text.cpp - findings of the gate barrier_safety
#include <algorithm>

#include "check/barrier_safety/barrier_safety.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/source_map.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::gates::barriers {

using namespace ptx;
using analysis::Agreement;

namespace {

constexpr std::size_t kMaxOrigins = 8;

/// The statement as it is printed, without the semicolon.
std::string construct(const Subject& s, std::uint32_t statement) {
  std::string text = print(s.module, s.function, s.function.body[statement]);
  while (!text.empty() && (text.back() == ';' || text.back() == '\n')) text.pop_back();
  return text;
}

/// The same without its guard.
std::string bare(const Subject& s, std::uint32_t statement) {
  std::string text = construct(s, statement);
  if (text.starts_with('@')) text.erase(0, text.find(' ') + 1);
  return text;
}

std::string site_text(const Subject& s, std::uint32_t statement) {
  const SourceLocation site = s.module.site_of(s.function.body[statement]);
  return site.known() ? format_text("{}:{}", site.file, site.line) : std::string();
}

std::string where(const Subject& s, std::uint32_t statement) {
  const std::uint32_t line = s.function.body[statement].line;
  if (line != 0) return format_text("line {}", line);
  const std::string site = site_text(s, statement);
  return site.empty() ? format_text("statement {}", statement) : site;
}

/// "line 12: setp.lt.u32 %p1, %r1, 5", and the C++ call.
std::string quoted(const Subject& s, std::uint32_t statement) {
  const std::string text = format_text("{}: {}", where(s, statement), construct(s, statement));
  const std::string site = site_text(s, statement);
  if (site.empty() || s.function.body[statement].line == 0) return text;
  return format_text("{} ({})", text, site);
}

// Sets of threads --------------------------------------------------------------------------------

/// A condition on `name` that selects these of 0 .. size-1; empty if there is no simple one.
std::string condition(const std::string& name, const std::vector<bool>& in) {
  const auto size = static_cast<std::uint32_t>(in.size());
  std::uint32_t count = 0, first = size, last = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    if (!in[i]) continue;
    ++count;
    first = std::min(first, i);
    last = i;
  }
  if (count == 0) return {};
  if (count == 1) return format_text("{} == {}", name, first);
  if (last - first + 1 == count) {
    if (first == 0) return format_text("{} < {}", name, last + 1);
    if (last == size - 1) return format_text("{} >= {}", name, first);
    return format_text("{} <= {} <= {}", first, name, last);
  }
  if (count + 1 == size) {
    std::uint32_t out = 0;
    while (in[out]) ++out;
    return format_text("{} != {}", name, out);
  }
  for (std::uint32_t period = 2; period <= 32 && period < size; ++period) {
    std::vector<bool> part(period);
    bool repeats = true;
    for (std::uint32_t i = 0; i < size; ++i) {
      if (i < period)
        part[i] = in[i];
      else
        repeats = repeats && in[i] == part[i % period];
    }
    if (!repeats) continue;
    return condition(format_text("{} % {}", name, period), part);
  }
  return {};
}

/// The condition on one coordinate that selects the threads; empty if there is none.
std::string along(const Threads& threads, const std::array<std::uint32_t, 3>& block,
                  std::size_t axis) {
  constexpr const char* kNames[] = {"%tid.x", "%tid.y", "%tid.z"};
  const std::uint32_t all = block[0] * block[1] * block[2];
  std::vector<bool> in(block[axis]), seen(block[axis]);
  for (std::uint32_t t = 0; t < all; ++t) {
    const std::uint32_t place[] = {t % block[0], t / block[0] % block[1], t / block[0] / block[1]};
    const std::uint32_t at = place[axis];
    if (seen[at] && in[at] != threads[t]) return {};
    seen[at] = true;
    in[at] = threads[t];
  }
  return condition(kNames[axis], in);
}

// Origins of values -----------------------------------------------------------------------

class Origins {
 public:
  explicit Origins(const Subject& subject) : s_(subject) {}

  /// The definitions that a register depends on, nearest first.
  std::vector<std::uint32_t> of(Register reg, std::uint32_t before) {
    std::vector<std::uint32_t> found;
    std::vector<std::pair<Register, std::uint32_t>> open{{reg, before}};
    for (std::size_t i = 0; i < open.size() && found.size() < kMaxOrigins; ++i) {
      const auto [source, at] = open[i];
      const std::uint32_t writer = writer_of(source, at);
      if (writer == kNone || std::ranges::find(found, writer) != found.end()) continue;
      found.push_back(writer);
      const Instruction& statement = s_.function.body[writer];
      if (has(info(statement.op).flags, Flag::ReadsMemory)) continue;
      analysis::for_each_access(s_.function, statement, [&](const analysis::RegisterAccess& a) {
        const std::uint32_t read = s_.index.find(a.reg);
        // Values on which all threads agree do not make them diverge.
        if (!a.write && read != kNone && s_.uniformity.of(read) < Agreement::Block)
          open.emplace_back(a.reg, writer);
      });
    }
    return found;
  }

 private:
  /// The last write before the statement in the text, else the first after it.
  std::uint32_t writer_of(Register reg, std::uint32_t before) const {
    std::uint32_t after = kNone, found = kNone;
    for (std::uint32_t i = 0; i < s_.function.body.size(); ++i) {
      bool writes = false;
      analysis::for_each_access(
          s_.function, s_.function.body[i],
          [&](const analysis::RegisterAccess& a) { writes = writes || (a.write && a.reg == reg); });
      if (!writes) continue;
      if (i < before) found = i;
      if (i >= before && after == kNone) after = i;
    }
    return found != kNone ? found : after;
  }

  const Subject& s_;
};

/// The registers that decide at a divergent statement.
std::vector<Register> deciding_registers(const Subject& s, std::uint32_t statement) {
  const Instruction& at = s.function.body[statement];
  std::vector<Register> registers;
  if (at.guard.present()) registers.push_back(at.guard.predicate);
  if (at.op == Op::brx_idx && s.function.operands_of(at)[0].kind == OperandKind::Register)
    registers.push_back(s.function.operands_of(at)[0].as_register());
  return registers;
}

/// Adds the definitions, a line each. Returns those that read memory or other threads' values.
std::vector<std::uint32_t> add_origins(const Subject& s, std::uint32_t statement,
                                       const std::vector<Register>& registers, Finding& finding) {
  std::vector<std::uint32_t> loads;
  Origins origins(s);
  for (const Register reg : registers) {
    for (const std::uint32_t origin : origins.of(reg, statement)) {
      const std::string text = "from: " + quoted(s, origin);
      if (std::ranges::find(finding.details, text) != finding.details.end()) continue;
      finding.details.push_back(text);
      constexpr Flag kForeign = Flag::ReadsMemory | Flag::Convergent | Flag::Volatile;
      if (has(info(s.function.body[origin].op).flags, kForeign)) loads.push_back(origin);
    }
  }
  return loads;
}

constexpr std::string_view kExitRule =
    "rule: on sm_70 and later a barrier waits for the threads that have not left the kernel; on "
    "older GPUs it never completes";

Finding start(const Subject& s, std::uint32_t barrier, Severity severity, bool exits) {
  Finding finding;
  const Instruction& statement = s.function.body[barrier];
  finding.severity = severity;
  finding.rule = exits ? "exited-before-barrier" : "barrier-divergence";
  finding.file = s.module.file;
  finding.line = statement.line;
  finding.kernel = s.module.text(s.function.name);
  finding.cpp = s.module.site_of(statement);
  SourceMap(s.module, s.function).fill(finding, barrier);
  finding.details.push_back("in: " + construct(s, barrier));
  return finding;
}

std::string awaited_threads(const Subject& s, std::uint32_t barrier) {
  const Use use = use_of(s.function, s.function.body[barrier]);
  const std::string statement = bare(s, barrier);
  switch (use.kind) {
    case UseKind::Warp:
      return format_text("{} waits for the lanes of its mask", statement);
    case UseKind::Cluster:
      return format_text("{} is for all threads of the cluster", statement);
    case UseKind::None:
      return "this call reaches a barrier for all threads of the block";
    default:
      break;
  }
  const std::string_view verb = use.waits ? "waits" : "arrives";
  if (use.count == nullptr)
    return format_text("{} {} for all threads of the block", statement, verb);
  if (use.count->kind == OperandKind::Integer)
    return format_text("{} {} for {} threads", statement, verb, use.count->value);
  return format_text("{} {} for a number of threads", statement, verb);
}

std::string_view cure_for(const Subject& s, const Walk& walk) {
  const Use use = use_of(s.function, s.function.body[walk.barrier]);
  if (use.kind == UseKind::Warp)
    return "cure: name only the lanes that execute it, or move it to where the whole warp passes";
  if (walk.trouble == Trouble::TooFew || walk.trouble == Trouble::Counts ||
      walk.trouble == Trouble::Number || walk.trouble == Trouble::Numbers)
    return "cure: let all threads of the barrier name the same number, 0 to 15, and the number of "
           "threads that arrive, a multiple of 32";
  if (walk.decider == walk.barrier)
    return "cure: remove the guard from the barrier and guard the work around it instead";
  if (walk.others_left)
    return "cure: let every thread reach the barrier, and predicate the accesses instead of "
           "leaving early or branching around it";
  return "cure: move the barrier out of the branch or the loop, or give each side a barrier of its "
         "own number that counts its threads";
}

/// "s" for the verb of one thread.
std::string_view plural(const Threads& threads) { return threads.count() == 1 ? "s" : ""; }

std::string stuck_message(const Subject& s, const Walk& walk, const Launch& launch) {
  const std::string barrier = bare(s, walk.barrier);
  const std::string awaited = awaited_threads(s, walk.barrier);
  const std::string who = walk.missing.any() ? describe(walk.missing, launch.block) : "";
  const std::string other = walk.other == kNone ? "" : where(s, walk.other);
  const std::string_view verb = plural(walk.missing);
  switch (walk.trouble) {
    case Trouble::Left:
      if (!s.function.entry)
        return format_text("{}, but {} return{} at {} before it", awaited, who, verb, other);
      if (walk.left_before)
        return format_text("{}, but {} leave{} the kernel at {} before it", awaited, who, verb,
                           other);
      return format_text("{}, but {} skip{} it and leave{} the kernel later, at {}", awaited, who,
                         verb, verb, other);
    case Trouble::Elsewhere:
      return format_text("{}, but {} wait{} at {} instead", awaited, who, verb, other);
    case Trouble::Diverged:
      return format_text("{} must be executed by whole warps, but {} reach{} {} instead", barrier,
                         who, walk.missing.count() == 1 ? "es" : "", other);
    case Trouble::TooFew: {
      const std::string text = format_text("{} waits for {} threads, but only {} arrive", barrier,
                                           walk.expected, walk.actual);
      if (who.empty()) return text;
      return format_text("{}; {} {} at {}", text, who, walk.others_left ? "left" : "wait", other);
    }
    case Trouble::Counts:
      return format_text("{} counts {} threads, but {} counts {} at the same barrier", barrier,
                         walk.expected, other, walk.actual);
    case Trouble::Number:
      if (walk.actual >= 16)
        return format_text("barrier {} does not exist; a block has barriers 0 to 15", walk.actual);
      return format_text(
          "a barrier cannot count {} threads; the number must be a positive multiple of 32",
          walk.expected);
    case Trouble::Numbers:
      return format_text(
          "{} names barrier {} for some threads that it counts, but barrier {} for {}", barrier,
          walk.expected, walk.actual, who);
    case Trouble::Unnamed:
      break;
  }
  return format_text("{} executes {} with the mask {:#x}, which does not include its lane",
                     describe(walk.waiting, launch.block), barrier, walk.expected);
}

/// The registers among these operands.
std::vector<Register> registers_of(std::initializer_list<const Operand*> operands) {
  std::vector<Register> registers;
  for (const Operand* o : operands) {
    if (o != nullptr && o->kind == OperandKind::Register) registers.push_back(o->as_register());
  }
  return registers;
}

/// Adds the statements at which threads may diverge. Returns the first load that decides, or kNone.
std::uint32_t add_deciders(const Subject& s, const Doubt& doubt, Finding& finding) {
  std::uint32_t first_load = kNone;
  for (const std::uint32_t decider : doubt.deciders) {
    finding.other_line = s.function.body[doubt.deciders[0]].line;
    finding.details.push_back(format_text("they may diverge at {}", quoted(s, decider)));
    const auto loads = add_origins(s, decider, deciding_registers(s, decider), finding);
    if (first_load == kNone && !loads.empty()) first_load = loads[0];
  }
  return first_load;
}

/// Whether control may differ before the barrier.
void explain_control(const Subject& s, const Doubt& doubt, Finding& finding) {
  std::string& text = finding.message;
  if (doubt.deciders.empty()) {
    text += ", and it cannot be shown that they arrive together";
    return;
  }
  const std::string first = where(s, doubt.deciders[0]);
  text += doubt.exits
              ? format_text(", and threads may leave the kernel before it through {}", first)
              : format_text(", and threads may diverge at {}", first);
  const std::uint32_t load = add_deciders(s, doubt, finding);
  if (load != kNone) text += format_text(", which depends on the result of {}", where(s, load));
  if (doubt.exits) {
    finding.details.emplace_back(kExitRule);
    finding.details.emplace_back(
        "cure: let every thread reach the barrier, and predicate the accesses instead of leaving "
        "early");
    return;
  }
  finding.details.push_back(format_text(
      "cure: branch on a value on which all its threads agree, such as a parameter or the result "
      "of bar.red{}",
      doubt.shape_known
          ? ""
          : ", or give the shape of the block with .reqntid if the condition depends on it"));
}

}  // namespace

std::string describe(const Threads& threads, const std::array<std::uint32_t, 3>& block) {
  const std::uint32_t all = block[0] * block[1] * block[2];
  const std::size_t count = threads.count();
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::string text = along(threads, block, axis);
    if (!text.empty())
      return format_text("{} {} ({} of {})", count == 1 ? "the thread with" : "threads with", text,
                         count, all);
  }
  std::uint32_t first = 0;
  while (first + 1 < all && !threads[first]) ++first;
  const std::string place = format_text("({},{},{})", first % block[0], first / block[0] % block[1],
                                        first / block[0] / block[1]);
  if (count == 1) return format_text("the thread {} (1 of {})", place, all);
  return format_text("{} of {} threads, the first {},", count, all, place);
}

Finding proved(const Subject& s, const Walk& walk, const Launch& launch, bool sure) {
  const bool exits = walk.left_before;
  Finding finding = start(s, walk.barrier, sure ? Severity::Error : Severity::Warning, exits);
  finding.message = stuck_message(s, walk, launch);
  if (walk.decider != kNone) {
    const Instruction& decider = s.function.body[walk.decider];
    finding.other_line = decider.line;
    const bool branch = has(info(decider.op).flags, Flag::Terminator);
    finding.details.push_back(format_text("they diverge at {}", quoted(s, walk.decider)));
    finding.details.push_back(
        format_text("{} by {}", branch ? "taken" : "executed", describe(walk.taken, launch.block)));
    static_cast<void>(add_origins(s, walk.decider, deciding_registers(s, walk.decider), finding));
  } else {
    const Use use = use_of(s.function, s.function.body[walk.barrier]);
    static_cast<void>(add_origins(s, walk.barrier, registers_of({use.id, use.count}), finding));
  }
  if (!launch.exact || !walk.exact) {
    const auto& block = launch.block;
    std::string seen = format_text("seen in: a block of ({},{},{})", block[0], block[1], block[2]);
    if (!walk.exact) seen += format_text(" with parameters of {}", launch.parameter);
    finding.details.push_back(std::move(seen));
  }
  if (exits) finding.details.emplace_back(kExitRule);
  finding.details.emplace_back(cure_for(s, walk));
  return finding;
}

Finding doubted(const Subject& s, const Doubt& doubt) {
  Finding finding = start(s, doubt.barrier, Severity::Warning, doubt.exits);
  const Use use = use_of(s.function, s.function.body[doubt.barrier]);
  const std::string barrier = bare(s, doubt.barrier);
  std::string& text = finding.message;
  text = awaited_threads(s, doubt.barrier);
  const auto cure = [&](std::string_view what) { finding.details.emplace_back(what); };
  const auto add_id = [&] {
    static_cast<void>(add_origins(s, doubt.barrier, registers_of({use.id}), finding));
  };
  switch (doubt.why) {
    case Doubt::Why::Control:
    case Doubt::Why::Call:
      explain_control(s, doubt, finding);
      break;
    case Doubt::Why::Number:
      text = format_text("the barrier number of {} may differ between threads", barrier);
      add_id();
      cure("cure: name the barrier by a constant");
      break;
    case Doubt::Why::Count:
      text = format_text("it cannot be shown that as many threads reach {} as it counts", barrier);
      cure(doubt.shape_known
               ? "cure: give the number of threads that arrive, or let its control depend on %tid "
                 "and constants alone"
               : "cure: give the shape of the block with .reqntid, so that the threads can be "
                 "counted");
      break;
    case Doubt::Why::Mask:
      text = format_text("it cannot be shown that the lanes that reach {} are those of its mask",
                         barrier);
      add_id();
      cure("cure: name the lanes by a constant mask, 0xffffffff where the whole warp passes");
      break;
    case Doubt::Why::Left:
      text += ", and threads may have left the kernel in a call before it";
      cure("cure: return from the called function and let all threads continue to the barrier");
      break;
    case Doubt::Why::Cluster:
      text += ", and its blocks may diverge before it";
      static_cast<void>(add_deciders(s, doubt, finding));
      cure("cure: let every block of the cluster arrive and wait equally often");
      break;
    case Doubt::Why::Unknown:
      text +=
          ", and this function cannot be analyzed: it has an unknown instruction or is too large";
      break;
  }
  return finding;
}

}  // namespace ptxgen::inline v0::gates::barriers
