import type { Expression, OrderItem, Query } from '../ast.ts';

/** The mutually recursive printing rules. They are injected, so that files do not import in a circle. */
export interface Printer {
  /** Parenthesizes an expression of lower precedence than `precedence`. */
  readonly expression: (expression: Expression, precedence: number) => string;
  readonly query: (query: Query) => string;
  readonly orderItem: (item: OrderItem) => string;
}
