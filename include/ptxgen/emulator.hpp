// ptxgen/emulator.hpp - running PTX on the CPU; not in this release
#pragma once

// The name is reserved so that `#include <ptxgen/emulator.hpp>` stays valid: the emulator will be
// declared here. docs/architecture.md says where it stands.
