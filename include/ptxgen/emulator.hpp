// ptxgen/emulator.hpp - running PTX on the CPU, with sanitizers and counters
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/emulator/host/arguments.hpp"
#include "ptxgen/emulator/observer.hpp"
#include "ptxgen/emulator/report/counters.hpp"
#include "ptxgen/emulator/report/groups.hpp"
#include "ptxgen/emulator/report/profile.hpp"
#include "ptxgen/emulator/report/rules.hpp"
