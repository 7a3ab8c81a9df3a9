// ptxgen/ptxgen.hpp - the whole library in one include
#pragma once

#include "ptxgen/support.hpp"
#include "ptxgen/version.hpp"
