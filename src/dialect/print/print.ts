import type { Expression, Query } from '../ast.ts';
import { printExpression as expressionText } from './expressions.ts';
import { precedence } from './precedence.ts';
import type { Printer } from './printer.ts';
import { printOrderItem, printQuery as queryText } from './queries.ts';

const printer: Printer = {
  expression: (expression, minPrecedence) => expressionText(printer, expression, minPrecedence),
  query: (query) => queryText(printer, query),
  orderItem: (item) => printOrderItem(printer, item),
};

/** A query as canonical text on one line; parsing that text gives an equal tree, but for the places. */
export const printQuery = (query: Query): string => queryText(printer, query);

/** An expression, with its name if it has one, as canonical text. */
export const printExpression = (expression: Expression): string =>
  printer.expression(expression, precedence.item);
