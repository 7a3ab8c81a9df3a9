// src/analysis/memory_text.cpp - text of the memory report
#include <cmath>

#include "ptxgen/analysis/memory_report.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::analysis {

using ptx::Space;

std::string_view to_string(AccessPattern pattern) noexcept {
  switch (pattern) {
    case AccessPattern::Coalesced:
      return "coalesced";
    case AccessPattern::Broadcast:
      return "broadcast";
    case AccessPattern::Strided:
      return "strided";
    case AccessPattern::Unknown:
      break;
  }
  return "unknown";
}

std::string_view to_string(CopyKind kind) noexcept {
  switch (kind) {
    case CopyKind::Lanes:
      return "lanes";
    case CopyKind::Bulk:
      return "bulk";
    case CopyKind::None:
      break;
  }
  return "none";
}

namespace {

std::string counted(const Spread& spread, std::string_view thing) {
  if (spread.min == spread.max) return count_text(spread.min, thing);
  return format_text("{} to {}", spread.min, count_text(spread.max, thing));
}

// One digit after the point, if it is not 0.
std::string decimal(double value) {
  const auto tenths = static_cast<std::uint64_t>(std::llround(value * 10));
  std::string text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) text += '.' + std::to_string(tenths % 10);
  return text;
}

std::string apart(const MemoryAccess& access) {
  if (access.lane_step.empty()) return {};
  return "lanes are " + access.lane_step + " bytes apart, ";
}

std::string sectors(const MemoryAccess& access) {
  return counted(access.sectors, "sector") + " of 32 bytes for " +
         count_text(access.bytes_wanted, "byte") + " wanted";
}

// Of one bulk copy that is understood.
std::string copy_in_words(const MemoryAccess& access) {
  if (!access.size_text.empty())
    return "coalesced: a copy of " + access.size_text + " bytes begins at a sector, 100 %";
  if (access.pattern == AccessPattern::Strided)
    return "misaligned: a copy begins within a sector, " + sectors(access) + ", " +
           std::to_string(access.sectors.min - access.ideal_sectors) + " more than needed";
  return "coalesced: a copy moves " + sectors(access) +
         (access.sectors.min == access.sectors.max
              ? ", 100 %"
              : ", by how the address is aligned, 100 % at best");
}

std::string in_words(const MemoryAccess& access) {
  if (access.copy == CopyKind::Bulk && access.affine()) return copy_in_words(access);
  const bool shared = access.space == Space::Shared, constant = access.space == Space::Const;
  const std::string verb = access.writes ? (access.reads ? "update" : "write") : "read";
  switch (access.pattern) {
    case AccessPattern::Unknown:
      return "unknown: " + access.reason;
    case AccessPattern::Broadcast:
      return "broadcast: all lanes " + verb + " the same " + count_text(access.bytes, "byte") +
             ", " +
             (shared     ? counted(access.wavefronts, "wavefront")
              : constant ? "at once"
                         : counted(access.sectors, "sector"));
    case AccessPattern::Coalesced:
      if (shared) return "no bank conflicts: " + counted(access.wavefronts, "wavefront");
      if (constant) return "one word for all lanes";
      if (access.sectors.min == access.sectors.max)
        return "coalesced: " + sectors(access) + ", 100 %";
      return "coalesced: " + sectors(access) + ", by how the address is aligned, 100 % at best";
    case AccessPattern::Strided:
      if (shared)
        return format_text("bank conflicts: {}{} where {} would do", apart(access),
                           counted(access.wavefronts, "wavefront"), access.ideal_wavefronts);
      if (constant)
        return format_text("serialised: {}, of which the constant cache serves one at a time",
                           counted(access.wavefronts, "different word"));
      return format_text("strided: {}{}, {} times what is needed", apart(access), sectors(access),
                         decimal(access.factor()));
  }
  return {};
}

std::string place(const MemoryAccess& access) {
  std::string text = access.line != 0 ? format_text("line {}", access.line)
                                      : format_text("statement {}", access.statement);
  if (access.cpp.known()) text += format_text(" ({}:{})", access.cpp.file, access.cpp.line);
  return text;
}

}  // namespace

std::string verdict(const MemoryAccess& access) {
  std::string text = in_words(access);
  if (access.affine() && access.masked && access.copy != CopyKind::Bulk)
    text += "; for a full warp, lanes may be masked";
  if (access.affine() && access.shortened)
    text += "; for copies in full, lanes may read fewer bytes";
  const auto& all = access.assumptions;
  for (std::size_t i = 0; i < all.size(); ++i)
    text += (i == 0 ? "; assuming that " : i + 1 == all.size() ? " and " : ", ") + all[i];
  if (!all.empty()) text += all.size() == 1 ? " does not wrap around" : " do not wrap around";
  return text;
}

std::string to_text(const MemoryReport& report) {
  const auto& size = report.block;
  std::string text =
      format_text("{}: memory accesses, for blocks of {} x {} x {}{}\n", report.function, size[0],
                  size[1], size[2], report.block_assumed ? " (assumed)" : "");
  for (const MemoryAccess& access : report.accesses) {
    text += format_text("  {}: {} {}\n    {}\n", place(access), access.opcode, access.address_text,
                        verdict(access));
  }
  const MemoryTotals& all = report.total;
  const std::string unsized =
      all.unsized == 0 ? "" : format_text(", {} of unknown size", all.unsized);
  return text +
         format_text("  total, each access once: {}, {} unknown{}; {} wanted, {} moved; {}\n",
                     count_text(all.accesses, "access"), all.unknown, unsized,
                     count_text(all.bytes_wanted, "byte"), counted(all.bytes_moved, "byte"),
                     count_text(all.bank_conflicts, "bank conflict"));
}

}  // namespace ptxgen::inline v0::analysis
