import type { Expression } from '../ast.ts';

/** The conditions that AND joins. */
export const conjunctsOf = (node: Expression): readonly Expression[] =>
  node.kind === 'logical' && node.operator === 'and' ? node.operands.flatMap(conjunctsOf) : [node];
