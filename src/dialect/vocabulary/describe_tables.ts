import type { Table } from '../ast.ts';
import { DialectError } from '../dialect_error.ts';
import { QueryText } from '../query_text.ts';
import type { Relation, RelationFields } from '../resolve/relation.ts';
import { type Project, Statement } from '../resolve/statement.ts';
import { tableNames, tableRelation } from '../resolve/tables/tables.ts';
import { nameOfType } from '../types.ts';

/** A field of a table as a query names it, such as `person.properties`. */
export interface DescribedField {
  readonly name: string;
  /** The ClickHouse name of its type. */
  readonly type: string;
}

/** A table that queries of a project can read. */
export interface DescribedTable {
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
