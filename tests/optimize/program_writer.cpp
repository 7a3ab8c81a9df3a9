// tests/optimize/program_writer.cpp - statements of random programs, without control flow
#include "program_writer.hpp"

#include <iterator>

namespace ptxgen::test {

namespace {

constexpr KindInfo kInfo[kKinds] = {
    {"%r", 8, "%rt", ".b32", 32},   {"%w", 4, "%wt", ".b64", 64}, {"%s", 3, "%st", ".b16", 16},
    {"%f", 6, "%ft", ".f32", 32},   {"%d", 4, "%dt", ".f64", 64}, {"%h", 4, "%ht", ".b16", 16},
    {"%hh", 3, "%hht", ".b32", 32}, {"%e", 4, "%et", ".b16", 16}, {"%ee", 3, "%eet", ".b32", 32},
};

// Words near which integers wrap around, and shift counts beyond any width.
constexpr const char* kConstants32[] = {
    "0",  "1",  "-1",  "2",  "3",          "7",          "31",         "32",
    "33", "64", "255", "-8", "0x80000000", "0x7fffffff", "0xfffffffe", "65536"};
constexpr const char* kConstants64[] = {
    "0", "1", "-1", "5", "63", "64", "4294967296", "0x7fffffffffffffff", "-9223372036854775807"};
constexpr const char* kConstants16[] = {"0", "1", "-1", "5", "15", "16", "32767", "-32768"};
constexpr const char* kConstantsF32[] = {"0f00000000", "0f80000000", "0f3F800000", "0fBF800000",
                                         "0f40490FDB", "0f7F800000", "0f7FC00000", "0f00000001",
                                         "0f3F7FFFFF", "0f00800001"};
constexpr const char* kConstantsF64[] = {
    "0d0000000000000000", "0d8000000000000000", "0d3FF0000000000000", "0dBFF0000000000000",
    "0d7FF0000000000000", "0d0000000000000001", "0d400921FB54442D18"};

std::string number(std::uint64_t value) { return std::to_string(value); }

}  // namespace

const KindInfo& info(Kind kind) { return kInfo[static_cast<std::size_t>(kind)]; }

ProgramWriter::ProgramWriter(std::uint64_t seed, Flavour flavour) : dice_(seed), flavour_(flavour) {
  modern_ = dice_.chance(70);
  result_.target = modern_ ? "sm_90" : "sm_80";
  float_kinds_ = {Kind::F, Kind::F, Kind::F, Kind::D, Kind::H, Kind::HH};
  if (modern_) float_kinds_.insert(float_kinds_.end(), {Kind::E, Kind::EE});
  constexpr const char* kRoundings[] = {"", ".rn", ".rn", ".rz", ".rm", ".rp"};
  favourite_rounding_ = dice_.pick(kRoundings);
  favourite_ftz_ = dice_.chance(30);
  favourite_sat_ = dice_.chance(10);
  const std::uint32_t words = 48;
  for (std::uint32_t i = 0; i < words; ++i) {
    constexpr std::uint32_t kSpecial[] = {
        0x7fc00000, 0x7f800000, 0xff800000, 0x80000000, 0,          0x00000001, 0x807fffff,
        0x3f800000, 0x7bff3c00, 0x80008001, 0x7e00fc00, 0x7fffffff, 0xffffffff};
    std::uint32_t word = static_cast<std::uint32_t>(dice_.bits());
    if (dice_.chance(35)) word = dice_.pick(kSpecial);
    // Floats near one, so that sums round.
    if (dice_.chance(35)) word = 0x3f000000u | (word & 0x80ffffffu);
    result_.input.push_back(word);
  }
}

std::string ProgramWriter::pool(Kind kind) {
  const KindInfo& row = info(kind);
  return row.pool + number(dice_.below(row.count));
}

std::string ProgramWriter::temp(Kind kind) {
  return info(kind).temp + number(temps_[static_cast<std::size_t>(kind)]++);
}

std::string ProgramWriter::held(Kind kind) {
  const auto& live = live_[static_cast<std::size_t>(kind)];
  if (!live.empty() && dice_.chance(35)) return dice_.pick(live);
  return pool(kind);
}

std::string ProgramWriter::constant(Kind kind) {
  switch (kind) {
    case Kind::R:
      return dice_.pick(kConstants32);
    case Kind::W:
      return dice_.pick(kConstants64);
    case Kind::S:
      return dice_.pick(kConstants16);
    case Kind::F:
      return dice_.pick(kConstantsF32);
    case Kind::D:
      return dice_.pick(kConstantsF64);
    default:
      return held(kind);  // no literals of these types
  }
}

std::string ProgramWriter::source(Kind kind) {
  return dice_.chance(flavour_ == Flavour::Constants ? 40 : 15) ? constant(kind) : held(kind);
}

std::string ProgramWriter::guard(unsigned percent) {
  if (!dice_.chance(percent)) return {};
  return (dice_.chance(50) ? "@" : "@!") + predicate() + " ";
}

std::string ProgramWriter::parameter(Kind kind, std::uint64_t value) {
  const std::string name = "p" + number(result_.parameters.size());
  result_.parameters.push_back(value);
  const std::string to = temp(kind);
  const unsigned bits = info(kind).bits;
  line("ld.param.u" + number(bits) + " " + to + ", [" + name + "];");
  return to;
}

std::uint32_t ProgramWriter::input_word(std::uint64_t value) {
  if (result_.input.size() % 2 != 0) result_.input.push_back(0);
  const auto at = static_cast<std::uint32_t>(result_.input.size());
  result_.input.push_back(static_cast<std::uint32_t>(value));
  result_.input.push_back(static_cast<std::uint32_t>(value >> 32));
  return at * 4;
}

std::string ProgramWriter::invariant(Kind kind, std::uint64_t value) {
  const unsigned bits = info(kind).bits;
  switch (dice_.below(4)) {
    case 0:
      return parameter(kind, value);
    case 1: {
      const std::string to = temp(kind);
      line("ld.global.u" + number(bits) + " " + to + ", [%in+" + number(input_word(value)) + "];");
      return to;
    }
    case 2: {
      const std::string to = temp(kind);
      const std::uint64_t mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
      line("mov.u" + number(bits) + " " + to + ", " + number(value & mask) + ";");
      return to;
    }
    default: {
      const std::uint64_t mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
      if (bits == 16)
        return number(value & 0x7fff) == number(value & mask) ? number(value & mask)
                                                              : parameter(kind, value);
      return number(value & mask);
    }
  }
}

std::string ProgramWriter::float_words(Kind kind, bool is_product) {
  const bool liked = dice_.chance(80);
  constexpr const char* kRoundings[] = {"", ".rn", ".rz", ".rm", ".rp"};
  std::string rounding = liked ? favourite_rounding_ : dice_.pick(kRoundings);
  const bool small = kind != Kind::F && kind != Kind::D;
  if (small && rounding.size() == 3 && rounding != ".rn") rounding = ".rn";
  std::string words = rounding;
  const bool has_ftz = kind == Kind::F || kind == Kind::H || kind == Kind::HH;
  if (has_ftz && (liked ? favourite_ftz_ : dice_.chance(40))) words += ".ftz";
  if (has_ftz && (liked ? favourite_sat_ && !is_product : dice_.chance(15))) words += ".sat";
  return words;
}

std::string ProgramWriter::float_operation(Kind kind, const char* operation, bool is_product) {
  constexpr const char* kSuffix[kKinds] = {"",     "",       "",      ".f32",   ".f64",
                                           ".f16", ".f16x2", ".bf16", ".bf16x2"};
  std::string words;
  if (operation == std::string("neg") || operation == std::string("abs")) {
    const bool has_ftz = kind == Kind::F || kind == Kind::H || kind == Kind::HH;
    if (has_ftz && dice_.chance(20)) words = ".ftz";
  } else {
    words = float_words(kind, is_product);
  }
  if (operation == std::string("fma")) {
    const bool small = kind != Kind::F && kind != Kind::D;
    if (words.rfind(".r", 0) != 0) words = ".rn" + words;
    // bf16 has no words but the rounding, which fma must say.
    if (small && (kind == Kind::E || kind == Kind::EE)) words = ".rn";
  }
  return operation + words + kSuffix[static_cast<std::size_t>(kind)];
}

// A product and a sum of it, with something in between or not.
void ProgramWriter::float_sum() {
  const Kind kind = dice_.pick(float_kinds_);
  const std::string at = guard(20);
  const bool shared = dice_.chance(15);
  const std::string product = dice_.chance(80) ? temp(kind) : pool(kind);
  const bool is_temp = product.find('t') != std::string::npos;
  const bool apart = dice_.chance(40);
  if (!at.empty() && is_temp && (apart || shared)) {
    line("mov" + std::string(info(kind).declare) + " " + product + ", " + pool(kind) + ";");
  }
  const std::string before = at.empty() || dice_.chance(80) ? at : guard(100);
  const bool other_guard = before != at;
  if (other_guard && is_temp) {
    line("mov" + std::string(info(kind).declare) + " " + product + ", " + pool(kind) + ";");
  }
  line(before + float_operation(kind, "mul", true) + " " + product + ", " + source(kind) + ", " +
       held(kind) + ";");
  if (apart) {
    const bool kept = keep_predicates_;
    keep_predicates_ |= !at.empty();
    if (shared && is_temp) live_[static_cast<std::size_t>(kind)].push_back(product);
    const std::uint32_t between = dice_.between(1, 2);
    for (std::uint32_t i = 0; i < between; ++i) simple();
    keep_predicates_ = kept;
  }
  std::string addend = product;
  const bool negates = dice_.chance(15);
  if (negates && at.empty()) {
    addend = temp(kind);
    line(float_operation(kind, "neg") + " " + addend + ", " + product + ";");
  }
  const std::string to = dice_.chance(15) && is_temp ? product : pool(kind);
  const std::string operation = float_operation(kind, dice_.chance(60) ? "add" : "sub");
  const std::string other = dice_.chance(5) ? addend : source(kind);
  const bool first = dice_.chance(50);
  line(at + operation + " " + to + ", " + (first ? addend : other) + ", " +
       (first ? other : addend) + ";");
  if (to == product) {
    line(at + "mov" + info(kind).declare + " " + pool(kind) + ", " + product + ";");
  }
  if (shared && is_temp) {
    line(at + "mov" + info(kind).declare + " " + pool(kind) + ", " + product + ";");
  } else if (is_temp && at.empty() && dice_.chance(15)) {
    live_[static_cast<std::size_t>(kind)].push_back(product);
  }
}

void ProgramWriter::integer_sum() {
  struct Form {
    Kind from, to;
    const char* product;
    const char* sum;
  };
  constexpr Form kForms[] = {
      {Kind::R, Kind::R, "mul.lo.u32", "add.u32"},
      {Kind::R, Kind::R, "mul.lo.s32", "add.s32"},
      {Kind::R, Kind::R, "mul.hi.u32", "add.u32"},
      {Kind::R, Kind::R, "mul.hi.s32", "add.s32"},
      {Kind::R, Kind::R, "mul.lo.s32", "add.u32"},
      {Kind::R, Kind::R, "mul24.lo.u32", "add.u32"},
      {Kind::S, Kind::S, "mul.lo.u16", "add.u16"},
      {Kind::S, Kind::S, "mul.lo.s16", "add.s16"},
      {Kind::W, Kind::W, "mul.lo.u64", "add.u64"},
      {Kind::W, Kind::W, "mul.lo.s64", "add.s64"},
      {Kind::R, Kind::W, "mul.wide.u32", "add.u64"},
      {Kind::R, Kind::W, "mul.wide.s32", "add.s64"},
      {Kind::S, Kind::R, "mul.wide.u16", "add.u32"},
      {Kind::S, Kind::R, "mul.wide.s16", "add.s32"},
      {Kind::R, Kind::R, "mul.lo.s32", "add.sat.s32"},
      {Kind::R, Kind::R, "mul.lo.s32", "sub.s32"},
      {Kind::W, Kind::W, "mul.hi.s64", "add.s64"},
      {Kind::R, Kind::R, "mul.lo.u32", "add.cc.u32"},
  };
  const Form& form = dice_.pick(kForms);
  const std::string at = guard(20);
  const std::string product = dice_.chance(80) ? temp(form.to) : pool(form.to);
  const bool is_temp = product.find('t') != std::string::npos;
  const bool apart = at.empty() && dice_.chance(40);
  line(at + form.product + " " + product + ", " + held(form.from) + ", " + source(form.from) + ";");
  if (apart) simple();
  const bool first = dice_.chance(50);
  const std::string other = source(form.to);
  line(at + form.sum + " " + pool(form.to) + ", " + (first ? product : other) + ", " +
       (first ? other : product) + ";");
  if (is_temp && at.empty() && dice_.chance(20)) {
    live_[static_cast<std::size_t>(form.to)].push_back(product);
  }
}

void ProgramWriter::integer() {
  constexpr const char* kTwo[] = {"add.u32", "sub.s32",    "mul.lo.u32", "and.b32", "or.b32",
                                  "xor.b32", "min.s32",    "max.u32",    "shl.b32", "shr.u32",
                                  "shr.s32", "mul.hi.u32", "mul.hi.s32", "min.u32", "max.s32"};
  constexpr const char* kWide[] = {"add.u64", "sub.s64", "mul.lo.u64", "and.b64",   "or.b64",
                                   "xor.b64", "min.s64", "max.u64",    "mul.hi.u64"};
  constexpr const char* kShort[] = {"add.u16", "sub.s16", "mul.lo.u16", "and.b16",
                                    "xor.b16", "min.s16", "max.u16",    "mul.hi.s16"};
  constexpr const char* kOne[] = {"not.b32", "neg.s32",  "abs.s32",   "popc.b32",
                                  "clz.b32", "brev.b32", "bfind.u32", "cnot.b32"};
  constexpr const char* kThree[] = {"mad.lo.u32", "bfe.u32",      "bfe.s32",        "prmt.b32",
                                    "sad.u32",    "dp4a.u32.u32", "shf.l.wrap.b32", "mad.hi.s32"};
  const std::string at = guard(20);
  const auto two = [&](Kind kind, const char* operation) {
    line(at + operation + " " + pool(kind) + ", " + source(kind) + ", " + source(kind) + ";");
  };
  switch (dice_.below(10)) {
    case 0:
    case 1:
    case 2:
      return two(Kind::R, dice_.pick(kTwo));
    case 3:
      return two(Kind::W, dice_.pick(kWide));
    case 4:
      return two(Kind::S, dice_.pick(kShort));
    case 5:
      return line(at + dice_.pick(kOne) + " " + pool(Kind::R) + ", " + held(Kind::R) + ";");
    case 6:  // of bfe, ptxas takes literals up to 255 only
      return line(at + dice_.pick(kThree) + " " + pool(Kind::R) + ", " + source(Kind::R) + ", " +
                  held(Kind::R) + ", " + held(Kind::R) + ";");
    case 7:
      if (const std::string a = pool(Kind::R), b = pool(Kind::R); a != b && dice_.chance(40)) {
        const std::string from = held(Kind::R);
        return line(at + "mov.v2.b32 {" + a + ", " + b + "}, {" + from + ", " + held(Kind::R) +
                    "};");
      }
      return line(at + "selp.b32 " + pool(Kind::R) + ", " + source(Kind::R) + ", " +
                  source(Kind::R) + ", " + predicate() + ";");
    case 8: {
      constexpr const char* kShifts[] = {"shl.b64", "shr.u64", "shr.s64"};
      return line(at + dice_.pick(kShifts) + " " + pool(Kind::W) + ", " + source(Kind::W) + ", " +
                  source(Kind::R) + ";");
    }
    default: {
      const std::string divisor = temp(Kind::R);
      line("or.b32 " + divisor + ", " + held(Kind::R) + ", 5;");
      constexpr const char* kDivisions[] = {"div.u32", "rem.u32", "div.s32", "rem.s32"};
      return line(at + dice_.pick(kDivisions) + " " + pool(Kind::R) + ", " + source(Kind::R) +
                  ", " + divisor + ";");
    }
  }
}

void ProgramWriter::floating() {
  const Kind kind = dice_.pick(float_kinds_);
  constexpr const char* kTwo[] = {"add", "sub", "mul", "mul", "add"};
  const std::string at = guard(20);
  switch (dice_.below(6)) {
    case 0:
      line(at + float_operation(kind, "neg") + " " + pool(kind) + ", " + held(kind) + ";");
      break;
    case 1:
      line(at + float_operation(kind, "fma") + " " + pool(kind) + ", " + source(kind) + ", " +
           held(kind) + ", " + source(kind) + ";");
      break;
    case 2:
      if (kind == Kind::F || kind == Kind::D) {
        const std::string type = kind == Kind::F ? ".f32 " : ".f64 ";
        line(at + (dice_.chance(50) ? "min" : "max") + type + pool(kind) + ", " + source(kind) +
             ", " + source(kind) + ";");
        break;
      }
      [[fallthrough]];
    default:
      line(at + float_operation(kind, dice_.pick(kTwo)) + " " + pool(kind) + ", " + source(kind) +
           ", " + held(kind) + ";");
      break;
  }
}

// Work for constant folding: everything is known, sometimes through registers.
void ProgramWriter::constants() {
  const auto known = [&](Kind kind) {
    if (dice_.chance(50)) return constant(kind);
    const std::string to = temp(kind);
    line("mov" + std::string(info(kind).declare) + " " + to + ", " + constant(kind) + ";");
    return to;
  };
  const std::string at = guard(15);
  switch (dice_.below(9)) {
    case 0: {
      constexpr const char* kShifts[] = {"shl.b32",    "shr.u32", "shr.s32", "mul.hi.s32",
                                         "mul.lo.u32", "sub.u32", "min.s32", "xor.b32"};
      const std::string a = known(Kind::R), b = known(Kind::R);
      return line(at + dice_.pick(kShifts) + " " + pool(Kind::R) + ", " + a + ", " + b + ";");
    }
    case 1: {
      constexpr const char* kWide[] = {"add.u64", "mul.lo.s64", "and.b64", "sub.s64", "max.s64"};
      const std::string a = known(Kind::W), b = known(Kind::W);
      return line(at + dice_.pick(kWide) + " " + pool(Kind::W) + ", " + a + ", " + b + ";");
    }
    case 2: {
      constexpr const char* kDivisors[] = {"1", "3", "-1", "-7", "16", "1000"};
      constexpr const char* kDividends[] = {"0", "1", "-1", "100", "-100", "0x7fffffff"};
      constexpr const char* kDivisions[] = {"div.u32", "rem.u32", "div.s32", "rem.s32"};
      return line(at + dice_.pick(kDivisions) + " " + pool(Kind::R) + ", " +
                  dice_.pick(kDividends) + ", " + dice_.pick(kDivisors) + ";");
    }
    case 3: {
      const std::string a = known(Kind::R), b = known(Kind::R);
      return line(at + "setp." + compare_words() + " " +
                  (keep_predicates_ ? new_predicate() : predicate()) + ", " + a + ", " + b + ";");
    }
    case 4: {
      const std::string p = new_predicate();
      line("setp." + compare_words() + " " + p + ", " + known(Kind::R) + ", " + constant(Kind::R) +
           ";");
      if (dice_.chance(50)) {
        constexpr const char* kLogic[] = {"and", "or", "xor"};
        const auto maybe_not = [&] { return dice_.chance(50) ? ", !" : ", "; };
        const char* logic = dice_.pick(kLogic);
        const std::string first = maybe_not() + p;
        line(std::string(logic) + ".pred " + p + first + maybe_not() +
             (dice_.chance(30) ? p : predicate()) + ";");
        if (dice_.chance(30)) line("not.pred " + p + ", !" + p + ";");
      }
      line(at + "selp.b32 " + pool(Kind::R) + ", " + held(Kind::R) + ", " + source(Kind::R) + ", " +
           p + ";");
      return line("@" + p + " add.u32 " + pool(Kind::R) + ", " + held(Kind::R) + ", 1;");
    }
    case 5: {  // identities
      constexpr const char* kIdentities[] = {
          "add.u32 %, %, 0", "mul.lo.u32 %, %, 1", "and.b32 %, %, -1", "or.b32 %, %, 0",
          "shl.b32 %, %, 0", "mul.lo.s32 %, %, 0", "and.b32 %, %, 0",  "sub.u32 %, %, 0",
          "xor.b32 %, %, 0", "shr.s32 %, %, 0"};
      std::string text = dice_.pick(kIdentities);
      text.replace(text.find('%'), 1, pool(Kind::R));
      text.replace(text.rfind('%', text.rfind(',')), 1, held(Kind::R));
      return line(at + text + ";");
    }
    case 6: {
      constexpr const char* kIdentities[] = {"add.rn.f32", "mul.f32", "sub.f32", "mul.rn.ftz.f32"};
      return line(at + dice_.pick(kIdentities) + " " + pool(Kind::F) + ", " + source(Kind::F) +
                  ", " + constant(Kind::F) + ";");
    }
    case 7: {
      constexpr const char* kFloat[] = {"add.f32", "mul.rz.f32", "sub.ftz.f32", "mul.rp.sat.f32"};
      return line(at + dice_.pick(kFloat) + " " + pool(Kind::F) + ", " + constant(Kind::F) + ", " +
                  constant(Kind::F) + ";");
    }
    default: {
      constexpr const char* kConversions[] = {"cvt.u16.u32 %s0, ", "cvt.s64.s32 %w0, ",
                                              "cvt.u64.u32 %w1, ", "cvt.rn.f32.s32 %f0, ",
                                              "cvt.s32.s8 %r1, ",  "mov.b32 %f1, "};
      const std::string conversion = dice_.pick(kConversions);
      const std::string from = temp(Kind::R);
      line("mov.b32 " + from + ", " + constant(Kind::R) + ";");
      return line(at + conversion + from + ";");
    }
  }
}

void ProgramWriter::copies() {
  constexpr Kind kAll[] = {Kind::R, Kind::R, Kind::W, Kind::S, Kind::F, Kind::D, Kind::H, Kind::HH};
  const Kind kind = dice_.pick(kAll);
  const std::string type = info(kind).declare;
  if (dice_.chance(60)) {
    const std::string first = temp(kind);
    std::string last = first;
    line("mov" + type + " " + first + ", " + source(kind) + ";");
    if (dice_.chance(40)) simple();
    if (dice_.chance(50)) {
      last = temp(kind);
      line("mov" + type + " " + last + ", " + first + ";");
      if (dice_.chance(50)) line(guard(40) + "mov" + type + " " + first + ", " + pool(kind) + ";");
    }
    if (dice_.chance(60)) line(guard(30) + "mov" + type + " " + pool(kind) + ", " + last + ";");
    if (dice_.chance(60)) live_[static_cast<std::size_t>(kind)].push_back(last);
    return;
  }
  line(guard(30) + "mov" + type + " " + pool(kind) + ", " + source(kind) + ";");
}

void ProgramWriter::dead() {
  constexpr const char* kWords[] = {"add.u32", "mul.lo.u32", "xor.b32", "shl.b32"};
  std::string last = temp(Kind::R);
  line("mov.u32 " + last + ", " + held(Kind::R) + ";");
  const std::uint32_t count = dice_.between(0, 2);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string next = dice_.chance(70) ? temp(Kind::R) : last;
    line((next == last ? guard(40) : std::string()) + dice_.pick(kWords) + " " + next + ", " +
         last + ", " + held(Kind::R) + ";");
    last = next;
  }
  if (dice_.chance(30)) {
    line("ld.global.u32 " + temp(Kind::R) + ", [%in+" + number(4 * dice_.below(40)) + "];");
  }
  if (dice_.chance(20)) line("div.s32 " + temp(Kind::R) + ", " + last + ", 3;");
}

std::string ProgramWriter::compare_words() {
  constexpr const char* kWords[] = {"eq.u32", "ne.s32", "lt.u32", "le.s32", "gt.u32", "ge.s32",
                                    "lo.u32", "ls.u32", "hi.u32", "hs.u32", "lt.s32", "gt.s32"};
  return dice_.pick(kWords);
}

void ProgramWriter::compare() {
  if (keep_predicates_) return integer();
  constexpr const char* kFloats[] = {"lt.f32",      "gtu.f32", "eq.f32",
                                     "neu.ftz.f32", "num.f32", "nan.f32"};
  const std::string at = guard(20);
  switch (dice_.below(6)) {
    case 0:
      return line(at + "setp." + dice_.pick(kFloats) + " " + predicate() + ", " + held(Kind::F) +
                  ", " + source(Kind::F) + ";");
    case 1: {
      constexpr const char* kLogic[] = {"and.pred", "or.pred", "xor.pred"};
      return line(at + dice_.pick(kLogic) + " " + predicate() + ", " + predicate() + ", " +
                  predicate() + ";");
    }
    case 2:
      return line(at + (dice_.chance(50) ? "not.pred " : "mov.pred ") + predicate() + ", " +
                  predicate() + ";");
    case 3: {
      const std::string p = "%p" + number(dice_.below(2)), q = "%p" + number(2 + dice_.below(2));
      return line("setp.lt.and.s32 " + p + "|" + q + ", " + held(Kind::R) + ", " + source(Kind::R) +
                  ", !" + predicate() + ";");
    }
    default:
      return line(at + "setp." + compare_words() + " " + predicate() + ", " + held(Kind::R) + ", " +
                  source(Kind::R) + ";");
  }
}

void ProgramWriter::convert() {
  const std::string at = guard(15);
  switch (dice_.below(9)) {
    case 0:
      return line(at + "cvt.rn.f32.s32 " + pool(Kind::F) + ", " + held(Kind::R) + ";");
    case 1:
      return line(at + "cvt.u32.u64 " + pool(Kind::R) + ", " + held(Kind::W) + ";");
    case 2:
      return line(at + "cvt.s64.s32 " + pool(Kind::W) + ", " + held(Kind::R) + ";");
    case 3:
      return line(at + "cvt.rn.f16.f32 " + pool(Kind::H) + ", " + held(Kind::F) + ";");
    case 4:
      return line(at + "cvt.f32.f16 " + pool(Kind::F) + ", " + held(Kind::H) + ";");
    case 5:
      return line(at + "mov.b32 " + pool(Kind::R) + ", " + held(Kind::F) + ";");
    case 6:
      return line(at + "mov.b32 " + pool(Kind::HH) + ", {" + held(Kind::H) + ", " + held(Kind::H) +
                  "};");
    case 7:
      return line(at + "cvt.u16.u32 " + pool(Kind::S) + ", " + held(Kind::R) + ";");
    default:
      return line(at + "mov.b64 {" + pool(Kind::R) + ", _}, " + held(Kind::W) + ";");
  }
}

void ProgramWriter::memory() {
  const std::string at = guard(25);
  const std::string own = "[%own+" + number(4 * dice_.below(kOwnWords)) + "]";
  switch (dice_.below(6)) {
    case 0:
      return line(at + "ld.global.f32 " + pool(Kind::F) + ", [%in+" + number(4 * dice_.below(40)) +
                  "];");
    case 1: {
      const std::string index = temp(Kind::R), wide = temp(Kind::W), address = temp(Kind::W);
      line("and.b32 " + index + ", " + held(Kind::R) + ", 31;");
      line("mul.wide.u32 " + wide + ", " + index + ", 4;");
      line("add.s64 " + address + ", %in, " + wide + ";");
      return line(at + "ld.global.u32 " + pool(Kind::R) + ", [" + address + "];");
    }
    case 2:
      return line(at + "ld.global.v2.u32 {" + "%r0, %r3}, [%in+" + number(8 * dice_.below(16)) +
                  "];");
    case 3:
      return line(at + "ld.global.u32 " + pool(Kind::R) + ", " + own + ";");
    default:
      return line(at + "st.global.u32 " + own + ", " + source(Kind::R) + ";");
  }
}

// What no pass may remove, repeat or move.
void ProgramWriter::ordered() {
  const std::string at = guard(25);
  const std::string own = "[%own+" + number(4 * dice_.below(kOwnWords)) + "]";
  const std::string to = dice_.chance(50) ? temp(Kind::R) : pool(Kind::R);
  switch (dice_.below(7)) {
    case 0:
      return line(at + "ld.volatile.global.u32 " + to + ", " + own + ";");
    case 1:
      return line(at + "ld.relaxed.gpu.global.u32 " + to + ", " + own + ";");
    case 2:
      return line(at + "ld.acquire.cta.global.u32 " + to + ", " + own + ";");
    case 3:
      return line(at +
                  (dice_.chance(50) ? "st.release.gpu.global.u32 " : "st.volatile.global.u32 ") +
                  own + ", " + source(Kind::R) + ";");
    case 4:
      return line(dice_.chance(50) ? "fence.acq_rel.gpu;" : "membar.cta;");
    case 5:
      return line(at + "atom.global.add.u32 " + to + ", " + own + ", " + source(Kind::R) + ";");
    default:
      return line(at + "red.global.add.u32 [%sum+" + number(4 * dice_.below(kProgramSumWords)) +
                  "], " + source(Kind::R) + ";");
  }
}

void ProgramWriter::simple() {
  struct Weight {
    void (ProgramWriter::*write)();
    unsigned by_flavour[6];
  };
  // Mixed, Floats, Integers, Loops, Constants, Copies.
  constexpr Weight kWeights[] = {
      {&ProgramWriter::float_sum, {12, 40, 3, 6, 2, 4}},
      {&ProgramWriter::floating, {8, 20, 2, 6, 4, 4}},
      {&ProgramWriter::integer_sum, {12, 3, 40, 8, 4, 4}},
      {&ProgramWriter::integer, {14, 6, 20, 20, 15, 15}},
      {&ProgramWriter::constants, {10, 4, 6, 5, 45, 6}},
      {&ProgramWriter::copies, {10, 6, 6, 6, 8, 35}},
      {&ProgramWriter::dead, {6, 2, 3, 3, 3, 12}},
      {&ProgramWriter::compare, {12, 8, 8, 10, 8, 8}},
      {&ProgramWriter::convert, {6, 5, 5, 4, 4, 4}},
      {&ProgramWriter::memory, {8, 4, 5, 5, 4, 5}},
      {&ProgramWriter::ordered, {4, 1, 2, 3, 2, 3}},
  };
  const auto flavour = static_cast<std::size_t>(flavour_);
  unsigned total = 0;
  for (const Weight& weight : kWeights) total += weight.by_flavour[flavour];
  unsigned left = dice_.below(total);
  for (const Weight& weight : kWeights) {
    if (left < weight.by_flavour[flavour]) return (this->*weight.write)();
    left -= weight.by_flavour[flavour];
  }
}

}  // namespace ptxgen::test
