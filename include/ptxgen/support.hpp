// ptxgen/support.hpp - errors, call sites and text buffers
#pragma once

#include "ptxgen/support/error.hpp"
#include "ptxgen/support/settings.hpp"
#include "ptxgen/support/source_location.hpp"
#include "ptxgen/support/text_buffer.hpp"
