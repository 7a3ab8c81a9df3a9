// src/emulator/memory/faults.cpp - findings about accesses to memory
#include "emulator/memory/faults.hpp"

#include "emulator/memory/address_space.hpp"
#include "emulator/report/report.hpp"
#include "emulator/memory/written_bits.hpp"
#include "ptx/occupancy.hpp"
#include "support/count.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

/// An access this far from an allocation is taken for one that missed it.
constexpr std::uint64_t kNear = std::uint64_t{1} << 20;
/// Below it an address is null plus a small offset.
constexpr std::uint64_t kNullPage = 1u << 16;

std::string bytes_text(std::uint64_t count) { return count_text(count, "byte"); }

std::string_view space_text(ptx::Space space) {
  switch (space) {
    case ptx::Space::Shared:
      return "shared memory";
    case ptx::Space::Local:
      return "the thread's local memory";
    case ptx::Space::Param:
      return "the kernel's parameters";
    case ptx::Space::Const:
      return "constant memory";
    default:
      return "global memory";
  }
}

std::string named(const Cta& owner) {
  return "block " + to_text(owner.id) + ", rank " + std::to_string(owner.rank) + " of the cluster";
}

/// "thread reads 4 bytes at 0x...", "thread writes 8 bytes at offset 0x40 of shared memory".
std::string beginning(const Fault& fault) {
  std::string text = "thread ";
  text += fault.request.writes ? (fault.request.reads ? "updates " : "writes ") : "reads ";
  text += bytes_text(fault.request.bytes) + " at ";
  if (window_start(fault.space) == 0) return text + hex(fault.address);
  text += "offset " + hex(fault.address) + " of " + std::string(space_text(fault.space));
  if (fault.owner != nullptr) text += " of " + named(*fault.owner);
  return text;
}

std::string named(const Allocation& allocation) {
  const std::string size = " (" + bytes_text(allocation.bytes) + ")";
  if (!allocation.name.empty()) return allocation.name + size;
  return "the allocation at " + hex(allocation.start) + size;
}

void add_symbol(const Fault& fault, FindingText& text) {
  if (!fault.detail.symbol.empty()) {
    text.details.push_back("the address operand names " + fault.detail.symbol);
  }
}

FindingText invalid(const Fault& fault) {
  FindingText text;
  text.message = beginning(fault) + ", ";
  const ptx::Space window = window_of(fault.address);
  if (fault.address < kNullPage) {
    text.message += fault.address == 0
                        ? std::string("a null pointer")
                        : "a null pointer with an offset of " + bytes_text(fault.address);
    text.details.emplace_back(
        "give the kernel the address of an allocation, or test the pointer before the access");
  } else if (window != ptx::Space::Global) {
    text.message += "which lies in the window of " + std::string(space_text(window)) + ", not in " +
                    std::string(space_text(fault.space));
    text.details.emplace_back(
        "take the generic address to its space with cvta.to, or use an access without a space");
  } else {
    text.message += "where no allocation is";
    text.details.emplace_back("check how the address is computed, and whether the argument is one");
  }
  add_symbol(fault, text);
  return text;
}

FindingText missed(const Fault& fault, const Allocation& near) {
  FindingText text;
  text.message = beginning(fault) + ", ";
  const std::uint64_t end = near.start + near.bytes;
  const std::uint64_t address = fault.address;
  if (near.freed && near.holds(address)) {
    text.message += "inside of " + named(near) + ", which was freed";
    text.details.emplace_back("free it after the last kernel that uses it");
    add_symbol(fault, text);
    return text;
  }
  if (near.holds(address)) {
    text.message +=
        "the last " + bytes_text(address + fault.request.bytes - end) + " of them past the end of ";
  } else if (address >= end) {
    text.message += address == end ? std::string("right at the end of ")
                                   : bytes_text(address - end) + " past the end of ";
  } else {
    text.message += bytes_text(near.start - address) + " before the start of ";
  }
  text.message += named(near) + (near.freed ? ", which was freed" : "");
  text.details.emplace_back(
      "compare the index with the size before the access, or make the allocation larger");
  add_symbol(fault, text);
  return text;
}

FindingText missed_offset(const Fault& fault, std::uint64_t size) {
  FindingText text;
  const std::uint64_t offset = fault.address;
  text.message = beginning(fault) + ", ";
  if (size == 0) {
    text.message += "of which there is none";
  } else if (offset < size) {
    text.message += "the last " + bytes_text(offset + fault.request.bytes - size) +
                    " of them past its end (" + bytes_text(size) + ")";
  } else if (offset == size) {
    text.message += "right at its end (" + bytes_text(size) + ")";
  } else {
    text.message += bytes_text(offset - size) + " past its end (" + bytes_text(size) + ")";
  }
  if (fault.space == ptx::Space::Shared) {
    const auto& variables = fault.context.grid->kernel_image->shared_variables;
    if (!variables.empty() && offset >= variables.back().offset) {
      text.details.push_back("the last variable there is '" + variables.back().name + "' (" +
                             bytes_text(variables.back().bytes) + " at offset " +
                             hex(variables.back().offset) + ")");
    }
    text.details.emplace_back(
        "declare more, or launch with more dynamic shared memory, or check the index");
  }
  add_symbol(fault, text);
  return text;
}

/// How large a space of offsets is for this thread.
std::uint64_t size_of(const Fault& fault) {
  switch (fault.space) {
    case ptx::Space::Shared:
      return fault.context.cta->shared_bytes;
    case ptx::Space::Local:
      return local_end(fault.context);
    default:
      return fault.context.grid->parameters.size();
  }
}

/// What was missed, as a cause: no address and no size in it.
std::string subject_of(const Fault& fault) {
  if (fault.space == ptx::Space::Shared) {
    for (const auto& variable : fault.context.grid->kernel_image->shared_variables) {
      if (fault.address - variable.offset < variable.bytes) {
        return "shared variable '" + variable.name + "'";
      }
    }
  }
  if (window_start(fault.space) != 0) return std::string(space_text(fault.space));
  const Allocation* const near = fault.context.grid->space->nearest(fault.address, kNear);
  if (near == nullptr) return std::string(space_text(fault.space));
  return near->name.empty() ? "the allocation at " + hex(near->start) : near->name;
}

template <class Text>
void report(const Fault& fault, Rule rule, Text&& text, bool mapped = false) {
  fault.context.grid->reporter->report_access(fault.context, fault.step.statement, rule, fault.lane,
                                              mapped, [&] {
                                                FindingText made = text();
                                                made.subject = subject_of(fault);
                                                return made;
                                              });
}

/// Bytes of shared memory that a block has with what rounds it up to the unit of the GPU.
std::uint64_t shared_with_slack(const Fault& fault) {
  const std::uint64_t unit = ptx::shared_unit(fault.context.grid->space->gpu());
  return (size_of(fault) + unit - 1) / unit * unit;
}

/// Outside of what a kernel may touch, but where a GPU has memory.
bool is_mapped(const Fault& fault) {
  const std::uint64_t bytes = fault.request.bytes;
  if (fault.space == ptx::Space::Shared) {
    const std::uint64_t end = shared_with_slack(fault);
    return fault.address < end && bytes <= end - fault.address;
  }
  if (window_start(fault.space) != 0) return false;
  return fault.context.grid->space->mapped(fault.address, bytes, fault.request.writes);
}

/// "byte 16 of argument 2 'y' (4096 bytes)" and the like, or empty.
std::string place(const Fault& fault) {
  if (fault.space == ptx::Space::Shared) {
    for (const auto& variable : fault.context.grid->kernel_image->shared_variables) {
      if (fault.address - variable.offset < variable.bytes) {
        return "byte " + std::to_string(fault.address - variable.offset) + " of shared variable '" +
               variable.name + "' (" + bytes_text(variable.bytes) + ")";
      }
    }
    return {};
  }
  if (window_start(fault.space) != 0) return {};
  const Allocation* const found = fault.context.grid->space->find(fault.address);
  if (found == nullptr) return {};
  return "byte " + std::to_string(fault.address - found->start) + " of " + named(*found);
}

}  // namespace

bool report_bounds(const Fault& fault) {
  const bool mapped = is_mapped(fault);
  if (window_start(fault.space) != 0) {
    const std::uint64_t size = size_of(fault);
    if (fault.address < size || fault.address - size < kNear) {
      report(
          fault, Rule::OutOfBounds, [&] { return missed_offset(fault, size); }, mapped);
      return mapped;
    }
    report(fault, Rule::InvalidAddress, [&] {
      FindingText text;
      text.message = beginning(fault) + ", which has " + bytes_text(size);
      if (fault.address >= kGlobalBase) {
        text.message +=
            ": the address is one of " + std::string(space_text(window_of(fault.address)));
        text.details.emplace_back(
            "take the generic address to its space with cvta.to, or use an access without a space");
      }
      add_symbol(fault, text);
      return text;
    });
    return mapped;
  }
  const Allocation* const near = fault.context.grid->space->nearest(fault.address, kNear);
  if (near == nullptr) {
    report(
        fault, Rule::InvalidAddress, [&] { return invalid(fault); }, mapped);
  } else {
    report(
        fault, Rule::OutOfBounds, [&] { return missed(fault, *near); }, mapped);
  }
  return mapped;
}

void report_misaligned(const Fault& fault) {
  report(fault, Rule::Misaligned, [&] {
    FindingText text;
    text.message =
        beginning(fault) + ", which is no multiple of " + std::to_string(fault.request.alignment);
    if (const std::string where = place(fault); !where.empty()) text.message += "; it is " + where;
    text.details.emplace_back(
        "an address must be a multiple of the whole access, all elements of a vector together");
    add_symbol(fault, text);
    return text;
  });
}

void report_readonly(const Fault& fault) {
  report(fault, Rule::WriteToReadonly, [&] {
    FindingText text;
    text.message = beginning(fault);
    if (const std::string where = place(fault); !where.empty()) text.message += ", " + where;
    text.message += fault.space == ptx::Space::Param ? ", which a kernel may only read"
                                                     : ", which is read-only";
    add_symbol(fault, text);
    return text;
  });
}

void report_unwritten(const Fault& fault) {
  report(fault, Rule::UninitializedRead, [&] {
    FindingText text;
    text.message = beginning(fault);
    if (const std::string where = place(fault); !where.empty()) text.message += ", " + where;
    text.message += ", which nobody has written";
    text.details.emplace_back(
        "write it first, and if another thread does, put a barrier between the two");
    add_symbol(fault, text);
    return text;
  });
}

void report_exited(const Fault& fault) {
  report(fault, Rule::ExitedBlock, [&] {
    FindingText text;
    text.message = beginning(fault) + ", which has left the kernel";
    text.details.emplace_back(
        "let all blocks of the cluster meet (barrier.cluster.arrive and .wait) after the last "
        "access to each other's memory and before the first of them leaves");
    add_symbol(fault, text);
    return text;
  });
}

void report_not_own(const Fault& fault) {
  report(fault, Rule::InvalidAddress, [&] {
    FindingText text;
    text.message = beginning(fault) + "; the instruction is for the block's own shared memory";
    text.details.emplace_back("use .shared::cluster, or a generic address without a space");
    add_symbol(fault, text);
    return text;
  });
}

void report_no_object(const Fault& fault) {
  report(fault, Rule::UninitializedRead, [&] {
    FindingText text;
    text.message = "thread uses an mbarrier at offset " + hex(fault.address) + " of shared memory";
    if (fault.owner != nullptr) text.message += " of " + named(*fault.owner);
    if (const std::string where = place(fault); !where.empty()) text.message += ", " + where;
    text.message += ", where none was initialised";
    text.details.emplace_back(
        "one thread runs mbarrier.init first, and a barrier stands between that and its use");
    add_symbol(fault, text);
    return text;
  });
}

}  // namespace ptxgen::inline v0::emulator
