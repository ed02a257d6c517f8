import type { Call, Expression } from '../dialect/ast.ts';
import { findFunction } from '../dialect/functions/registry.ts';
import { walk } from '../dialect/walk.ts';

const isAggregate = ({ name, over }: Call): boolean =>
  over === null && findFunction(name.text)?.definition.kind === 'aggregate';

/** Whether an expression computes something of many rows; what subqueries compute is theirs. */
export function hasAggregate(expression: Expression): boolean {
  let found = false;
  walk(expression, {
    enter: (node) => {
      if (node.kind === 'call' && isAggregate(node)) found = true;
      return node.kind !== 'subquery';
    },
  });
  return found;
}

/** Whether it is the same for all rows, such as `1`, which in GROUP BY would mean a column's place. */
export const isConstant = ({ kind }: Expression): boolean =>
  kind === 'number' || kind === 'string' || kind === 'boolean' || kind === 'null' || kind === 'time';

/** An expression without the name that it has. */
export const withoutName = (expression: Expression): Expression =>
  expression.kind === 'alias' ? expression.expression : expression;
