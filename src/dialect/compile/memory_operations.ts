import type { Call, Query } from '../ast.ts';
import type { Node } from '../ast_node.ts';
import { findFunction } from '../functions/registry.ts';
import { walk } from '../walk.ts';

/**
 * The number of sorts and hash tables that PostgreSQL may keep in memory at the same time for a query, each of up to
 * `work_mem`. An estimate: it counts clauses and calls, not the nodes of the plan.
 */
export function memoryOperations(query: Query): number {
  let operations = 0;
  walk(query, {
    enter: (node) => {
      operations += operationsOf(node);
      return true;
    },
  });
  return operations;
}

function operationsOf(node: Node): number {
  switch (node.kind) {
    case 'select':
      return (
        Number(node.distinct) +
        Number(node.groupBy !== null) +
        Number(node.orderBy.length > 0) +
        Number(node.limitBy !== null)
      );
    case 'set_operation':
    case 'join':
      return 1;
    case 'call':
      return operationsOfCall(node);
    default:
      return 0;
  }
}

/** A set in a gathering aggregate is sorted twice: its size is computed first. */
function operationsOfCall({ name, distinct, orderBy, over }: Call): number {
  if (over !== null) return 1;
  const found = findFunction(name.text);
  if (found?.definition.kind !== 'aggregate') return 0;
  const { definition, combinators } = found;
  const isDistinct = distinct || combinators.includes('Distinct');
  if (!isDistinct && !definition.sorts && orderBy.length === 0) return 0;
  return definition.gathers !== null && (isDistinct || definition.gathers === 'distinct') ? 2 : 1;
}
