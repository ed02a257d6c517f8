import { QueryText } from './query_text.ts';
import type { ArgumentType, FunctionDefinition, FunctionKind } from './functions/function_definition.ts';
import { functionDefinitions } from './functions/registry.ts';
import { type Project, Statement } from './resolve/statement.ts';
import { readableTables } from './resolve/tables/tables.ts';
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

/** The tables that queries of a project can read now, with their fields, as the compiler resolves them. */
export const describeTables = (project: Project): readonly DescribedTable[] =>
  readableTables(new Statement(project, new QueryText(''))).map(({ name, columns }) => ({
    name,
    fields: columns.map((column) => ({ name: column.name, type: nameOfType(column.type) })),
  }));
