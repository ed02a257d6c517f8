import { type Expression, type Field, type Node, walk } from '@exportd/dialect/ast';
import { parseExpression, parseQuery, parseSelectItem } from '@exportd/dialect/parser/queries';
import { isPart, readFields, treeOf } from './query_texts.ts';

/** What a name is of. */
export type NameKind = 'event' | 'event property' | 'person property';

/** The name of an event or of a property, as a query has it. */
export interface MentionedName {
  readonly kind: NameKind;
  readonly name: string;
}

/**
 * The names of events and properties that a query depends on: those of its series, filters and breakdowns, and in a text of
 * the dialect the events that `event` is compared with, and the properties that it reads. Names that depend on values are
 * left out.
 */
export function mentionedNames(query: unknown): readonly MentionedName[] {
  const found = new Map<string, MentionedName>();
  const add = (kind: NameKind, name: unknown): void => {
    if (typeof name === 'string' && name !== '' && !isComputed(name))
      found.set(`${kind} ${name}`, { kind, name });
  };
  addFields(query, add);
  return [...found.values()];
}

/** Properties that queries compute. */
const isComputed = (name: string): boolean => name.startsWith('$virt_') || name === '$session_duration';

type Add = (kind: NameKind, name: unknown) => void;

/** Whose property the type of a filter, a breakdown or a math names; undefined for what is no property of these. */
function ownerOf(type: unknown): NameKind | undefined {
  const name =
    typeof type === 'string' ? type.replace(/^numerical_/, '').replace(/_properties$/, '') : 'event';
  if (name === 'event') return 'event property';
  return name === 'person' ? 'person property' : undefined;
}

/** Adds the names in the fields of a query, at any depth. */
function addFields(value: unknown, add: Add): void {
  if (Array.isArray(value)) for (const item of value) addFields(item, add);
  if (!isPart(value)) return;
  const { kind, event, key, type } = value;
  if (kind === 'EventsNode' || kind === 'EventsQuery') add('event', event);
  if (kind === 'DialectQuery') addTexts(treesOf(value.query, parseQuery), [], add);
  if (kind === 'EventsQuery')
    addTexts(
      [...treesOf(value.select, parseSelectItem), ...treesOf(value.where, parseExpression)],
      ['events'],
      add,
    );
  const addProperties = (names: unknown, ownerType: unknown): void => {
    const owner = ownerOf(ownerType);
    if (owner) for (const name of [names].flat()) add(owner, name);
  };
  if ('operator' in value || 'value' in value) addProperties(key, type);
  addProperties(value.math_property, value.math_property_type);
  addProperties(value.breakdown, value.breakdown_type);
  addProperties(value.property, type);
  for (const [, inner] of readFields(value)) addFields(inner, add);
}

/** The trees of a text or a list of texts that parse. */
const treesOf = (texts: unknown, parse: (text: string) => Node): readonly Node[] =>
  [texts].flat().flatMap((text) => (typeof text === 'string' ? (treeOf({ text, parse }) ?? []) : []));

/**
 * Adds the names in texts of the dialect.
 * @param tables what the texts read besides the tables that they name
 */
function addTexts(texts: readonly Node[], tables: readonly string[], add: Add): void {
  const { tableOf, renamed } = tablesIn(texts, tables);
  /** The path of a field below its table, and the table. */
  const read = ({ path }: Field): readonly [table: string | undefined, ...path: string[]] => {
    const names = path.map(({ text: name }) => name);
    const qualified = names.length > 1 ? tableOf.get(names[0] ?? '') : undefined;
    return qualified === undefined ? [tableOf.get(''), ...names] : [qualified, ...names.slice(1)];
  };
  const isEvent = (node: Expression): boolean => {
    if (node.kind !== 'field') return false;
    const [table, name, ...more] = read(node);
    return table === 'events' && name === 'event' && more.length === 0 && !renamed.has('event');
  };
  const enter = (node: Node): boolean => {
    if (node.kind === 'comparison' && equalities.has(node.operator)) {
      if (isEvent(node.left)) for (const name of stringsIn(node.right)) add('event', name);
      if (isEvent(node.right)) for (const name of stringsIn(node.left)) add('event', name);
    }
    if (node.kind === 'field') {
      const [table, first, second, third] = read(node);
      if (table === 'events' && first === 'person' && second === 'properties') add('person property', third);
      if (first === 'properties' && !renamed.has(first) && (table === 'events' || table === 'persons'))
        add(table === 'events' ? 'event property' : 'person property', second);
    }
    return true;
  };
  for (const text of texts) walk(text, { enter });
}

const equalities: ReadonlySet<string> = new Set([
  '=',
  '!=',
  'in',
  'not in',
  'global in',
  'global not in',
  'is distinct from',
  'is not distinct from',
]);

/** The strings of a literal or a list of literals. */
function stringsIn(node: Expression): readonly string[] {
  if (node.kind === 'string') return [node.value];
  return node.kind === 'tuple' || node.kind === 'array' ? node.items.flatMap(stringsIn) : [];
}

/**
 * The tables of texts by their names and aliases. Under '' the only one that they read, which fields without a table belong to;
 * `renamed` has the names that the texts themselves give to columns.
 */
function tablesIn(
  texts: readonly Node[],
  tables: readonly string[],
): {
  readonly tableOf: ReadonlyMap<string, string>;
  readonly renamed: ReadonlySet<string>;
} {
  const tableOf = new Map(tables.map((name) => [name, name]));
  const renamed = new Set<string>();
  const named = new Set<string>();
  const enter = (node: Node): boolean => {
    if (node.kind === 'query_cte') named.add(node.name.text);
    if (node.kind === 'column_cte' || node.kind === 'alias') renamed.add(node.name.text);
    if (node.kind === 'table') {
      const name = node.path.map(({ text }) => text).join('.');
      tableOf.set(node.alias?.text ?? name, name);
      tableOf.set(name, name);
    }
    return true;
  };
  for (const text of texts) walk(text, { enter });
  for (const name of named) tableOf.delete(name);
  const read = new Set([...tableOf.values()].filter((name) => !named.has(name)));
  const [only] = read;
  if (read.size === 1 && only !== undefined) tableOf.set('', only);
  return { tableOf, renamed };
}
