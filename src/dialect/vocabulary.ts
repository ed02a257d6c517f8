import type { Table } from './ast.ts';
import { DialectError, QueryText } from './query_text.ts';
import type { ArgumentType, FunctionDefinition, FunctionKind } from './functions/function_definition.ts';
import { functionDefinitions } from './functions/registry.ts';
import type { Relation, RelationFields } from './resolve/relation.ts';
import { type Project, Statement } from './resolve/statement.ts';
import { tableNames, tableRelation } from './resolve/tables/tables.ts';
import { nameOfType } from './types.ts';

/** A function of the dialect as an editor shows it. */
interface DescribedFunction {
  readonly name: string;
  readonly kind: FunctionKind;
  /** The types of its arguments and of its result: `(string, [integer]) → string`. */
  readonly signature: string;
  readonly description: string;
}

/** The functions that queries can call, without those that combinators form. */
export const describeFunctions = (): readonly DescribedFunction[] =>
  functionDefinitions
    .filter(({ unsupported }) => unsupported === null)
    .map((definition) => ({
      name: definition.name,
      kind: definition.kind,
      signature: signatureOf(definition),
      description: definition.description,
    }));

function signatureOf({
  parameterTypes,
  argumentTypes,
  returns,
}: Pick<FunctionDefinition, 'parameterTypes' | 'argumentTypes' | 'returns'>): string {
  const parameters = parameterTypes.length === 0 ? '' : `(${listOf(parameterTypes)})`;
  return `${parameters}(${listOf(argumentTypes)}) → ${returns}`;
}

/** `string, [integer], any…`: optional types in brackets, and an ellipsis after one that repeats. */
const listOf = (types: readonly ArgumentType[]): string =>
  types
    .map((type) => {
      if (type.endsWith('...')) return `${type.slice(0, -3)}…`;
      return type.endsWith('?') ? `[${type.slice(0, -1)}]` : type;
    })
    .join(', ');

/** A field of a table as a query names it, such as `person.properties`. */
interface DescribedField {
  readonly name: string;
  /** The ClickHouse name of its type. */
  readonly type: string;
}

/** A table that queries of a project can read. */
interface DescribedTable {
  readonly name: string;
  readonly fields: readonly DescribedField[];
}

/** Rows inside rows: `pdi.person.properties` has two. */
const maxNesting = 2;

/** The tables that queries of a project can read now, with their fields, as the compiler resolves them. */
export function describeTables(project: Project): readonly DescribedTable[] {
  const statement = new Statement(project, new QueryText(''));
  return tableNames(statement).flatMap((name) => {
    const relation = readableRelation(statement, name);
    return relation === null ? [] : [{ name, fields: describeFields(relation, '', maxNesting) }];
  });
}

/** Null for a table that the source lacks. */
function readableRelation(statement: Statement, name: string): Relation | null {
  try {
    return tableRelation(statement, tableNode(name));
  } catch (error) {
    if (error instanceof DialectError) return null;
    throw error;
  }
}

function describeFields(
  { names, field }: RelationFields,
  path: string,
  nesting: number,
): readonly DescribedField[] {
  return names().flatMap((name): readonly DescribedField[] => {
    const found = field(name);
    const fullName = `${path}${name}`;
    if (found?.kind === 'column') return [{ name: fullName, type: nameOfType(found.type) }];
    if (found?.kind === 'nested' && nesting > 0)
      return describeFields(found.fields, `${fullName}.`, nesting - 1);
    return [];
  });
}

const span = { start: 0, end: 0 };

const tableNode = (name: string): Table => ({
  kind: 'table',
  path: name.split('.').map((text) => ({ kind: 'name', text, ...span })),
  alias: null,
  final: false,
  sample: null,
  ...span,
});
