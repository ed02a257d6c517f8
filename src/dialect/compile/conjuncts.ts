import type { Expression } from '../ast.ts';

/** The operands of nested ANDs. */
export const conjunctsOf = (node: Expression): readonly Expression[] =>
  node.kind === 'logical' && node.operator === 'and' ? node.operands.flatMap(conjunctsOf) : [node];
