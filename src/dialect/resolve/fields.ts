import type { Expression, Field, Name } from '../ast.ts';
import { nearestName } from '../dialect_error.ts';
import { quoteString } from '../lexer.ts';
import type { NestedRow, Relation, RelationField, UnsupportedField } from './relation.ts';
import type { Scope } from './scope.ts';
import { tableNames } from './tables/tables.ts';
import type { Value } from './value.ts';

/** What the first names of a path refer to. `rest` holds the remaining names. */
type ResolvedName =
  | ResolvedField
  | ({ readonly rest: readonly Name[] } & (
      | { readonly kind: 'value'; readonly value: Value }
      | { readonly kind: 'expression'; readonly expression: Expression }
    ));

interface ResolvedField {
  readonly kind: 'relation_field';
  readonly relationField: RelationField;
  readonly name: Name;
  readonly rest: readonly Name[];
}

/**
 * Resolves the start of a path such as `e.person.properties.email`. An alias of SELECT takes precedence over a
 * column, except inside its own expression.
 * @throws DialectError
 */
export function resolveField(field: Field, scope: Scope): ResolvedName {
  const [first, ...rest] = field.path;
  if (first === undefined) throw new Error('A field without a name.');
  const name = first.text;
  const parameter = scope.lambdaParameters.get(name);
  if (parameter !== undefined) return { kind: 'value', value: parameter, rest };
  const alias = scope.aliases.get(name);
  const qualifiedByTable = alias === undefined ? undefined : qualifiedField(field.path, scope, false);
  if (qualifiedByTable !== undefined) return qualifiedByTable;
  if (alias !== undefined && !scope.expandingAliases.includes(alias))
    return { kind: 'expression', expression: alias, rest };
  const arrayJoinColumn = scope.arrayJoinColumns.get(name);
  if (arrayJoinColumn !== undefined) return { kind: 'value', value: arrayJoinColumn, rest };
  const qualified = qualifiedField(field.path, scope, true);
  if (qualified !== undefined) return qualified;
  const usingColumn = scope.usingColumns.get(name);
  if (usingColumn !== undefined)
    return { kind: 'relation_field', relationField: usingColumn, name: first, rest };
  const relationField = unqualifiedField(first, scope);
  if (relationField !== undefined) return { kind: 'relation_field', relationField, name: first, rest };
  const expression = cteExpression(name, scope);
  if (expression !== undefined && !scope.expandingAliases.includes(expression))
    return { kind: 'expression', expression, rest };
  throw unknownFieldError(field, first, scope);
}

/** Resolves an unqualified name. @throws DialectError if several relations have it */
function unqualifiedField(name: Name, scope: Scope): RelationField | undefined {
  const found = scope.relations.flatMap((relation) => {
    const relationField = relation.field(name.text);
    return relationField === undefined ? [] : [{ relation, relationField }];
  });
  const [only, another] = found;
  if (another !== undefined)
    throw ambiguousFieldError(
      name,
      found.map(({ relation }) => relation),
      scope,
    );
  return only?.relationField;
}

/** Resolves the nested row before a star, such as `person` or `e.person`. @throws DialectError */
export function resolveRow(path: readonly Name[], scope: Scope): NestedRow | UnsupportedField | undefined {
  const [first, ...rest] = path;
  const qualified = qualifiedField(path, scope, false);
  const alone = first === undefined || rest.length > 0 ? undefined : unqualifiedField(first, scope);
  const relationField = qualified?.rest.length === 0 ? qualified.relationField : alone;
  return relationField?.kind === 'column' ? undefined : relationField;
}

/** Resolves `e.event`, also by table name. A table name with dots takes as many parts of the path. */
function qualifiedField(path: readonly Name[], scope: Scope, isRequired: boolean): ResolvedField | undefined {
  for (const relation of scope.relations) {
    const parts = relation.name?.split('.').length ?? 0;
    const named = path.slice(0, parts).map(({ text }) => text);
    const [next, ...rest] = path.slice(parts);
    if (parts === 0 || next === undefined || named.join('.') !== relation.name) continue;
    const relationField = relation.field(next.text);
    if (relationField !== undefined) return { kind: 'relation_field', relationField, name: next, rest };
    if (!isRequired || scope.relations.some((other) => other.field(path[0]?.text ?? '') !== undefined))
      continue;
    const near = nearestName(next.text, relation.names());
    throw scope.statement.error(`Unable to resolve field: ${next.text}`, next, didYouMean(near));
  }
  return undefined;
}

function cteExpression(name: string, scope: Scope): Expression | undefined {
  for (let { ctes } = scope; ctes !== null; ctes = ctes.outer) {
    const expression = ctes.expressions.get(name);
    if (expression !== undefined) return expression;
  }
  return undefined;
}

function ambiguousFieldError(name: Name, relations: readonly Relation[], scope: Scope): Error {
  const tables = relations.map((relation) => relation.name ?? 'an unnamed subquery');
  const qualifier = relations[0]?.name ?? 'table';
  return scope.statement.error(
    `Ambiguous field: ${name.text} is in ${tables.join(' and ')}.`,
    name,
    `Qualify it, for example ${qualifier}.${name.text}.`,
  );
}

function unknownFieldError(field: Field, first: Name, scope: Scope): Error {
  const { statement, relations, outerRelations } = scope;
  const name = first.text;
  if (relations.some((relation) => relation.name === name) || tableNames(statement).includes(name)) {
    const suggestion = field.path.length === 1 ? `Select one of its columns, such as ${name}.id.` : null;
    return statement.error(`Can't select a table when a column is expected: ${name}`, first, suggestion);
  }
  const alias = scope.aliases.get(name);
  const isColumnOfItsName = alias !== undefined && alias === scope.expandingAliases.at(-1);
  if (alias !== undefined && !isColumnOfItsName)
    return statement.error(`The alias ${name} refers to itself.`, first);
  const isOutside = outerRelations.some(
    (relation) => relation.name === name || relation.field(name) !== undefined,
  );
  if (isOutside && !relations.some((relation) => relation.names().includes(name)))
    return statement.error(
      `Unable to resolve field: ${name}`,
      first,
      'A subquery cannot use columns of the outer query; use a JOIN.',
    );
  const names = [
    ...scope.lambdaParameters.keys(),
    ...[...scope.aliases.keys()].filter((known) => known !== name),
    ...scope.arrayJoinColumns.keys(),
    ...relations.flatMap((relation) => [...relation.names()]),
    ...relations.flatMap((relation) => (relation.name === null ? [] : [relation.name])),
  ];
  const near = nearestName(name, names);
  const hint = near === null ? quoteHint(field, first, statement.queryText.text) : didYouMean(near);
  return statement.error(`Unable to resolve field: ${name}`, first, hint);
}

/** A hint for `event = "purchase"`, as other SQL dialects write strings. */
const quoteHint = ({ path }: Field, { start, text }: Name, query: string): string | null =>
  path.length === 1 && query[start] === '"'
    ? `Write strings in single quotes: ${quoteString(text, "'")}.`
    : null;

export const didYouMean = (near: string | null): string | null =>
  near === null ? null : `Perhaps you meant \`${near}\`?`;
