import type { Expression, OrderItem, Query } from '../ast.ts';

/** The rules of printing that need each other; handed in, so that the files need no cycle. */
export interface Printer {
  /** Brackets stand round an expression that is looser than `level`. */
  readonly expression: (expression: Expression, precedence: number) => string;
  readonly query: (query: Query) => string;
  readonly orderItem: (item: OrderItem) => string;
}
