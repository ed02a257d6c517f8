// The AST of the dialect: queries contain expressions, and expressions contain queries.

export type * from './ast_expressions.ts';
export type * from './ast_leaves.ts';
export type * from './ast_queries.ts';
