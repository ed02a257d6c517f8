/** How large a query may be, so that neither the parser nor whatever walks its tree can be exhausted. */
export interface ParseLimits {
  /** Characters (UTF-16 code units) of the text. */
  readonly length: number;
  /** Nodes of the tree. */
  readonly nodes: number;
  /** Height of the tree, and how deeply brackets, queries and operators may be nested. */
  readonly depth: number;
}

/** The engine that analysts come from cuts at the same length and number of nodes by default. */
export const defaultLimits: ParseLimits = { length: 262_144, nodes: 50_000, depth: 250 };
