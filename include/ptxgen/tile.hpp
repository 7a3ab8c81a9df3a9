// ptxgen/tile.hpp - tile shapes, views of tensors, partitions
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/tile/access.hpp"
#include "ptxgen/tile/dynamic.hpp"
#include "ptxgen/tile/shape.hpp"
#include "ptxgen/tile/tokens.hpp"
#include "ptxgen/tile/view.hpp"
