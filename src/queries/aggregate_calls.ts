import { type Call, type Expression, walk } from '../dialect/ast.ts';
import { findFunction } from '../dialect/functions/registry.ts';

const isAggregate = ({ name, over }: Call): boolean =>
  over === null && findFunction(name.text)?.definition.kind === 'aggregate';

/** Whether an expression contains an aggregate of its own SELECT. Aggregates inside subqueries belong to those. */
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

/**
 * Whether an expression is the same for all rows. A constant such as `1` in GROUP BY would mean a column's position.
 */
export const isConstant = ({ kind }: Expression): boolean =>
  kind === 'number' || kind === 'string' || kind === 'boolean' || kind === 'null' || kind === 'time';

/** An expression without its alias. */
export const withoutName = (expression: Expression): Expression =>
  expression.kind === 'alias' ? expression.expression : expression;
