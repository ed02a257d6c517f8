import type { Expression } from '../../ast.ts';
import type { IntegerRange } from '../../functions/function_definition.ts';
import type { Statement } from '../../resolve/statement.ts';
import type { Value } from '../../resolve/value.ts';

/** Values with their nodes, and what error messages call them. */
export interface RangeCheckedValues {
  readonly values: readonly Value[];
  readonly nodes: readonly Expression[];
  readonly what: 'argument' | 'parameter';
}

/**
 * Checks numbers against their ranges. Parameters must be integer literals; arguments are checked only if they are
 * literals.
 * @throws DialectError for a number out of range
 */
export function checkRanges(
  name: string,
  ranges: readonly IntegerRange[],
  { values, nodes, what }: RangeCheckedValues,
  statement: Statement,
): void {
  for (const { index, min, max = Infinity, argumentCount } of ranges) {
    const [constant, node] = [values[index]?.constant, nodes[index]];
    if (node === undefined || (argumentCount !== undefined && argumentCount !== nodes.length)) continue;
    const isNumber = typeof constant === 'bigint' || typeof constant === 'number';
    if (what === 'argument' && !isNumber) continue;
    const number = isNumber ? Number(constant) : NaN;
    const isWhole = what === 'argument' || typeof constant === 'bigint';
    if (isWhole && number >= min && number <= max) continue;
    throw statement.error(
      `${what === 'argument' ? 'Argument' : 'Parameter'} ${index + 1} of '${name}' must be an integer ${max === Infinity ? `of at least ${min}` : `from ${min} to ${max}`}.`,
      node,
    );
  }
}
