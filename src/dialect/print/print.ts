import type { Expression, Query } from '../ast.ts';
import { expressionText } from './expressions.ts';
import { precedence } from './precedence.ts';
import type { Printer } from './printer.ts';
import { printOrderItem, queryText } from './queries.ts';

const printer: Printer = {
  expression: (expression, minPrecedence) => expressionText(printer, expression, minPrecedence),
  query: (query) => queryText(printer, query),
  orderItem: (item) => printOrderItem(printer, item),
};

/** Prints a query as canonical text on one line. Parsing it yields an equal tree, apart from spans. */
export const printQuery = (query: Query): string => queryText(printer, query);

/** Prints an expression, with its alias if it has one, as canonical text. */
export const printExpression = (expression: Expression): string =>
  printer.expression(expression, precedence.item);
