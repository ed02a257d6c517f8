/** Size limits that protect the parser and everything that recurses over the tree. */
export interface ParseLimits {
  /** Length of the text, in UTF-16 code units. */
  readonly length: number;
  /** Number of nodes in the tree. */
  readonly nodes: number;
  /** Height of the tree, and nesting depth of parentheses, queries and operators. */
  readonly depth: number;
  /** Number of SELECTs. PostgreSQL plans each over all partitions of its tables. */
  readonly selects: number;
  /** Number of values in the list of an IN. */
  readonly values: number;
}

/** ClickHouse has the same default limits for length and number of nodes. */
export const defaultLimits: ParseLimits = {
  length: 262_144,
  nodes: 50_000,
  depth: 250,
  selects: 100,
  values: 10_000,
};
