import type { Node } from '../ast_node.ts';
import { type Column, columnIdentity } from '../resolve/relation.ts';
import { columnOperation, derive, noTraits, type Value } from '../resolve/value.ts';

/** The value of a column where a node reads it. */
export const columnValue = (column: Column, node: Node): Value =>
  derive(columnOperation(columnIdentity(column)), [], column.type, column.sql, {
    traits: { ...noTraits, column: node },
    ...(column.properties === undefined ? {} : { properties: column.properties }),
  });
