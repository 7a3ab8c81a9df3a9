// src/check/barrier_safety/text.cpp - what the gate barrier_safety has to say
#include <algorithm>

#include "check/barrier_safety/barrier_safety.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/source_map.hpp"

namespace ptxgen::inline v0::gates::barriers {

using namespace ptx;
using analysis::Agreement;

namespace {

constexpr std::size_t kMaxOrigins = 8;

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string hex(std::uint64_t value) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  do {
    text.insert(text.begin(), kDigits[value & 0xf]);
    value >>= 4;
  } while (value != 0);
  return "0x" + text;
}

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
  return site.known() ? std::string(site.file) + ":" + number(site.line) : std::string();
}

std::string where(const Subject& s, std::uint32_t statement) {
  const std::uint32_t line = s.function.body[statement].line;
  if (line != 0) return "line " + number(line);
  const std::string site = site_text(s, statement);
  return site.empty() ? "statement " + number(statement) : site;
}

/// "line 12: setp.lt.u32 %p1, %r1, 5", and the C++ call.
std::string quoted(const Subject& s, std::uint32_t statement) {
  std::string text = where(s, statement) + ": " + construct(s, statement);
  const std::string site = site_text(s, statement);
  if (!site.empty() && s.function.body[statement].line != 0) text += " (" + site + ")";
  return text;
}

std::string shape(const std::array<std::uint32_t, 3>& block) {
  return "(" + number(block[0]) + "," + number(block[1]) + "," + number(block[2]) + ")";
}

// Sets of threads --------------------------------------------------------------------------------

/// Which of 0 .. size-1, as a condition on `name`; empty if it is not simple.
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
  if (count == 1) return name + " == " + number(first);
  if (last - first + 1 == count) {
    if (first == 0) return name + " < " + number(last + 1);
    if (last == size - 1) return name + " >= " + number(first);
    return number(first) + " <= " + name + " <= " + number(last);
  }
  if (count + 1 == size) {
    std::uint32_t out = 0;
    while (in[out]) ++out;
    return name + " != " + number(out);
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
    return condition(name + " % " + number(period), part);
  }
  return {};
}

/// Whether membership hangs on one coordinate alone, and how.
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

// Where a value comes from -----------------------------------------------------------------------

class Origins {
 public:
  explicit Origins(const Subject& subject) : s_(subject) {}

  /// The definitions behind a register, nearest first.
  std::vector<std::uint32_t> of(Register reg, std::uint32_t before) {
    std::vector<std::uint32_t> found;
    std::vector<std::pair<Register, std::uint32_t>> open{{reg, before}};
    for (std::size_t i = 0; i < open.size() && found.size() < kMaxOrigins; ++i) {
      const auto [wanted, at] = open[i];
      const std::uint32_t writer = writer_of(wanted, at);
      if (writer == kNone || std::ranges::find(found, writer) != found.end()) continue;
      found.push_back(writer);
      const Instruction& statement = s_.function.body[writer];
      if (has(info(statement.op).flags, Flag::ReadsMemory)) continue;
      analysis::for_each_access(s_.function, statement, [&](const analysis::RegisterAccess& a) {
        const std::uint32_t read = s_.index.find(a.reg);
        // What all threads agree on does not part them.
        if (!a.write && read != kNone && s_.uniformity.of(read) < Agreement::Block)
          open.emplace_back(a.reg, writer);
      });
    }
    return found;
  }

 private:
  /// The last write in the text before, else the first behind.
  std::uint32_t writer_of(Register reg, std::uint32_t before) const {
    std::uint32_t behind = kNone, found = kNone;
    for (std::uint32_t i = 0; i < s_.function.body.size(); ++i) {
      bool writes = false;
      analysis::for_each_access(
          s_.function, s_.function.body[i],
          [&](const analysis::RegisterAccess& a) { writes = writes || (a.write && a.reg == reg); });
      if (!writes) continue;
      if (i < before) found = i;
      if (i >= before && behind == kNone) behind = i;
    }
    return found != kNone ? found : behind;
  }

  const Subject& s_;
};

/// What a statement at which threads part chooses by.
std::vector<Register> chooses_by(const Subject& s, std::uint32_t statement) {
  const Instruction& at = s.function.body[statement];
  std::vector<Register> registers;
  if (at.guard.present()) registers.push_back(at.guard.predicate);
  if (at.op == Op::brx_idx && s.function.operands_of(at)[0].kind == OperandKind::Register)
    registers.push_back(s.function.operands_of(at)[0].as_register());
  return registers;
}

/// The definitions, a line each. Returns those that read memory or another thread's value.
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
    "rule: on sm_70 and later a barrier waits for the threads that have not left the kernel, on "
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

std::string whom_it_waits_for(const Subject& s, std::uint32_t barrier) {
  const Use use = use_of(s.function, s.function.body[barrier]);
  const std::string what = bare(s, barrier);
  switch (use.kind) {
    case UseKind::Warp:
      return what + " waits for the lanes of its mask";
    case UseKind::Cluster:
      return what + " is for all threads of the cluster";
    case UseKind::None:
      return "this call comes to a barrier for all threads of the block";
    default:
      return what + (use.waits ? " waits for " : " arrives for ") +
             (use.count == nullptr                      ? "all threads of the block"
              : use.count->kind == OperandKind::Integer ? number(use.count->value) + " threads"
                                                        : "a number of threads");
  }
}

std::string cure_for(const Subject& s, const Walk& walk) {
  const Use use = use_of(s.function, s.function.body[walk.barrier]);
  if (use.kind == UseKind::Warp)
    return "cure: name only the lanes that come here, or move it to where the whole warp passes";
  if (walk.trouble == Trouble::TooFew || walk.trouble == Trouble::Counts ||
      walk.trouble == Trouble::Number || walk.trouble == Trouble::Numbers)
    return "cure: let all threads that meet name the same barrier, 0 to 15, and the number of "
           "threads "
           "that come, a multiple of 32";
  if (walk.decider == walk.barrier)
    return "cure: take the guard off the barrier and guard the work around it instead";
  if (walk.others_left)
    return "cure: let every thread reach the barrier, and predicate the accesses instead of "
           "leaving early or branching around it";
  return "cure: move the barrier out of the branch or the loop, or give each side a barrier of its "
         "own number that counts its threads";
}

}  // namespace

std::string describe(const Threads& threads, const std::array<std::uint32_t, 3>& block) {
  const std::uint32_t all = block[0] * block[1] * block[2];
  const std::size_t count = threads.count();
  const std::string share = " (" + number(count) + " of " + number(all) + ")";
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::string text = along(threads, block, axis);
    if (!text.empty()) return (count == 1 ? "the thread with " : "threads with ") + text + share;
  }
  std::uint32_t first = 0;
  while (first + 1 < all && !threads[first]) ++first;
  if (count == 1)
    return "the thread (" + number(first % block[0]) + "," + number(first / block[0] % block[1]) +
           "," + number(first / block[0] / block[1]) + ")" + share;
  return number(count) + " of " + number(all) + " threads, the first (" + number(first % block[0]) +
         "," + number(first / block[0] % block[1]) + "," + number(first / block[0] / block[1]) +
         "),";
}

Finding proved(const Subject& s, const Walk& walk, const Launch& launch, bool sure) {
  const bool exits = walk.left_before;
  Finding finding = start(s, walk.barrier, sure ? Severity::Error : Severity::Warning, exits);
  const std::string who = walk.missing.any() ? describe(walk.missing, launch.block) : "";
  const std::string verb = walk.missing.count() == 1 ? "s" : "";
  std::string& text = finding.message;
  text = whom_it_waits_for(s, walk.barrier);
  switch (walk.trouble) {
    case Trouble::Left:
      text += ", but " + who;
      if (s.function.entry && !walk.left_before) {
        text += std::string(walk.missing.count() == 1 ? " skips" : " skip") + " it and leave" +
                verb + " the kernel later, at " + where(s, walk.other);
        break;
      }
      text += (s.function.entry ? " leave" : " return") + verb +
              (s.function.entry ? " the kernel at " : " at ") + where(s, walk.other) + " before it";
      break;
    case Trouble::Elsewhere:
      text += ", but " + who + " wait" + verb + " at " + where(s, walk.other) + " instead";
      break;
    case Trouble::Apart:
      text = bare(s, walk.barrier) + " has to be executed by whole warps, but " + who +
             (walk.missing.count() == 1 ? " comes to " : " come to ") + where(s, walk.other) +
             " instead";
      break;
    case Trouble::TooFew:
      text = bare(s, walk.barrier) + " waits for " + number(walk.wanted) + " threads, but only " +
             number(walk.found) + " come";
      if (!who.empty())
        text += "; " + who + (walk.others_left ? " left at " : " wait at ") + where(s, walk.other);
      break;
    case Trouble::Counts:
      text = bare(s, walk.barrier) + " counts " + number(walk.wanted) + " threads, where " +
             where(s, walk.other) + " counts " + number(walk.found) + " at the same barrier";
      break;
    case Trouble::Number:
      text = walk.found >= 16
                 ? "there is no barrier " + number(walk.found) + "; a block has barriers 0 to 15"
                 : "a barrier cannot count " + number(walk.wanted) +
                       " threads; the number must be a positive multiple of 32";
      break;
    case Trouble::Numbers:
      text = bare(s, walk.barrier) + " means barrier " + number(walk.wanted) +
             " for some threads it counts, but barrier " + number(walk.found) + " for " + who;
      break;
    case Trouble::Unnamed:
      text = describe(walk.waiting, launch.block) + " executes " + bare(s, walk.barrier) +
             " with the mask " + hex(walk.wanted) + ", which does not name its lane";
      break;
  }
  if (walk.decider != kNone) {
    finding.other_line = s.function.body[walk.decider].line;
    const bool branch = has(info(s.function.body[walk.decider].op).flags, Flag::Terminator);
    finding.details.push_back("they part at " + quoted(s, walk.decider));
    finding.details.push_back((branch ? "there: " : "executed by ") +
                              describe(walk.turned, launch.block) + (branch ? " go this way" : ""));
    static_cast<void>(add_origins(s, walk.decider, chooses_by(s, walk.decider), finding));
  } else {
    std::vector<Register> registers;
    const Use use = use_of(s.function, s.function.body[walk.barrier]);
    for (const Operand* o : {use.id, use.count}) {
      if (o != nullptr && o->kind == OperandKind::Register) registers.push_back(o->as_register());
    }
    static_cast<void>(add_origins(s, walk.barrier, registers, finding));
  }
  if (!launch.exact || !walk.exact) {
    std::string seen = "seen in: a block of " + shape(launch.block);
    if (!walk.exact) seen += " with parameters of " + number(launch.parameter);
    finding.details.push_back(seen);
  }
  if (exits) finding.details.emplace_back(kExitRule);
  finding.details.push_back(cure_for(s, walk));
  return finding;
}

Finding doubted(const Subject& s, const Doubt& doubt) {
  Finding finding = start(s, doubt.barrier, Severity::Warning, doubt.exits);
  const Use use = use_of(s.function, s.function.body[doubt.barrier]);
  std::string& text = finding.message;
  text = whom_it_waits_for(s, doubt.barrier);
  std::vector<Register> registers;
  std::string cure;
  switch (doubt.why) {
    case Doubt::Why::Control:
    case Doubt::Why::Call:
      if (doubt.deciders.empty()) {
        text += ", and it cannot be shown that they come together";
        break;
      }
      finding.other_line = s.function.body[doubt.deciders[0]].line;
      text += doubt.exits ? ", and threads may leave the kernel before it by way of "
                          : ", and threads may part at ";
      text += where(s, doubt.deciders[0]);
      for (const std::uint32_t decider : doubt.deciders) {
        finding.details.push_back("they may part at " + quoted(s, decider));
        for (const std::uint32_t load : add_origins(s, decider, chooses_by(s, decider), finding)) {
          if (text.find(" by what ") == std::string::npos)
            text += " by what " + where(s, load) + " gives";
        }
      }
      if (doubt.exits) {
        finding.details.emplace_back(kExitRule);
        cure =
            "cure: let every thread reach the barrier, and predicate the accesses instead of "
            "leaving early";
        break;
      }
      cure =
          "cure: choose by a value that all its threads agree on, such as a parameter or the "
          "result of bar.red";
      if (!doubt.shape_known)
        cure += ", or say the shape of the block by .reqntid where the condition hangs on it";
      break;
    case Doubt::Why::Number:
      text = "which barrier " + bare(s, doubt.barrier) + " means may differ between threads";
      if (use.id->kind == OperandKind::Register) registers.push_back(use.id->as_register());
      cure = "cure: name the barrier by a constant";
      break;
    case Doubt::Why::Count:
      text = "it cannot be shown that as many threads come to " + bare(s, doubt.barrier) +
             " as it counts";
      cure = doubt.shape_known
                 ? "cure: name the number of threads that come, or let control to it hang on "
                   "%tid and constants alone"
                 : "cure: say the shape of the block by .reqntid, so that the threads can be "
                   "counted";
      break;
    case Doubt::Why::Mask:
      text = "it cannot be shown that the lanes which come to " + bare(s, doubt.barrier) +
             " are those of its mask";
      if (use.id->kind == OperandKind::Register) registers.push_back(use.id->as_register());
      cure = "cure: name the lanes by a constant mask, 0xffffffff where the whole warp passes";
      break;
    case Doubt::Why::Left:
      text += ", and threads may have left the kernel in a call before it";
      cure = "cure: return from the called function and let all threads go on to the barrier";
      break;
    case Doubt::Why::Cluster:
      text += ", and its blocks may part on the way";
      for (const std::uint32_t decider : doubt.deciders) {
        finding.other_line = s.function.body[doubt.deciders[0]].line;
        finding.details.push_back("they may part at " + quoted(s, decider));
        static_cast<void>(add_origins(s, decider, chooses_by(s, decider), finding));
      }
      cure = "cure: let every block of the cluster arrive and wait equally often";
      break;
    case Doubt::Why::Unknown:
      text +=
          ", and nothing is known of this function's threads: it holds an instruction that is "
          "not known, or is too large";
      break;
  }
  if (!registers.empty()) static_cast<void>(add_origins(s, doubt.barrier, registers, finding));
  if (!cure.empty()) finding.details.push_back(cure);
  return finding;
}

}  // namespace ptxgen::inline v0::gates::barriers
