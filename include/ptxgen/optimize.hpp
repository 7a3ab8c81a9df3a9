// ptxgen/optimize.hpp - passes over the IR; none in this release
#pragma once

// The name is reserved so that `#include <ptxgen/optimize.hpp>` stays valid: the pass manager and
// its passes will be declared here. docs/architecture.md says where they stand.
