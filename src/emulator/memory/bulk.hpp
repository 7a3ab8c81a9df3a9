// src/emulator/memory/bulk.hpp - when bulk copies are carried out
#pragma once

#include "emulator/memory/bulk_queue.hpp"

namespace ptxgen::inline v0::emulator {

/// Carries out the copies that are due.
void deliver_due(Cta& cta);
/// Carries out the copy that is due first; false if there is none.
bool deliver_next(Cta& cta);
/// Carries out all copies; the block has ended.
void deliver_all(Cta& cta);
/// Reports copies that no thread has waited for; the block has ended.
void report_unfinished(Cta& cta);

}  // namespace ptxgen::inline v0::emulator
