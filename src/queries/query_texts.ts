import type { Node } from '@exportd/dialect/ast';
import {
  parseExpression,
  parseOrderItem,
  parseQuery,
  parseSelectItem,
} from '@exportd/dialect/parser/queries';
import { DialectError } from '@exportd/dialect/query_text';
import { withoutLabel } from './expressions.ts';

/** A text of the dialect in a field of a query. */
interface DialectText {
  readonly text: string;
  /** Path of the field in the request. */
  readonly attr: string;
  /** @throws DialectError */
  readonly parse: (text: string) => Node;
}

type Part = Readonly<Record<string, unknown>>;

export const isPart = (value: unknown): value is Part =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Fields that say nothing about which rows a query reads. */
const unread: ReadonlySet<string> = new Set(['response', 'tags', 'modifiers', 'variables', 'value']);

/** The fields of a part of a query that say which rows it reads. */
export const readFields = (part: Part): readonly (readonly [name: string, value: unknown])[] =>
  Object.entries(part).filter(
    ([name]) => !unread.has(name) && !(part.kind === 'DialectQuery' && name === 'values'),
  );

/** The fields that are texts, or lists of texts, wherever they are. */
const fields: Readonly<Record<string, DialectText['parse']>> = {
  select: parseSelectItem,
  where: parseExpression,
  orderBy: (text) => parseOrderItem(withoutLabel(text)),
  math_hogql: parseExpression,
  funnelAggregateByHogQL: parseExpression,
};

/** The texts of the dialect in a query, at any depth. @param attr path of the query */
export function* dialectTexts(value: unknown, attr: string): Generator<DialectText> {
  if (Array.isArray(value))
    for (const [index, item] of value.entries()) yield* dialectTexts(item, `${attr}__${index}`);
  if (!isPart(value)) return;
  const { kind, type, breakdown_type, key, property, breakdown, query } = value;
  if (kind === 'DialectQuery') yield* textsOf(query, `${attr}__query`, parseQuery);
  if (type === 'hogql') {
    yield* textsOf(key, `${attr}__key`, parseExpression);
    yield* textsOf(property, attr, parseExpression);
  }
  if (breakdown_type === 'hogql') yield* textsOf(breakdown, `${attr}__breakdown`, parseExpression);
  for (const [name, parse] of Object.entries(fields)) yield* textsOf(value[name], `${attr}__${name}`, parse);
  for (const [name, inner] of readFields(value)) yield* dialectTexts(inner, `${attr}__${name}`);
}

/** A text, or those of a list. Anything else has none. */
function* textsOf(value: unknown, attr: string, parse: DialectText['parse']): Generator<DialectText> {
  if (typeof value === 'string') yield { text: value, attr, parse };
  if (Array.isArray(value))
    for (const [index, item] of value.entries()) yield* textsOf(item, `${attr}__${index}`, parse);
}

/** The tree of a text; null if it does not parse: the query itself says why. */
export function treeOf({ text, parse }: Pick<DialectText, 'text' | 'parse'>): Node | null {
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof DialectError) return null;
    throw error;
  }
}
