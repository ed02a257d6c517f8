import { sourceContract, type RelationRole } from '../contract.ts';
import { findColumn, type RelationFacts } from './relation_facts.ts';
import type { ReadCatalog, SourceFinding } from './report.ts';

/** The role that reads the source. */
export interface SourceRole {
  /** Its quoted name. */
  readonly role: string;
  /** Whether it sees when the transactions of other roles started. */
  readonly sees_sessions: boolean;
}

/** Reads which role exportd has in the source. */
export async function readSourceRole(read: ReadCatalog): Promise<SourceRole> {
  const [role] = await read<SourceRole>(
    `select quote_ident(current_user) as role, pg_has_role(current_user, 'pg_read_all_stats', 'usage') as sees_sessions`,
  );
  return role ?? { role: 'current_user', sees_sessions: true };
}

/** Checks what the role needs besides the relations. */
export const checkRole = ({ role, sees_sessions }: SourceRole): SourceFinding[] =>
  sees_sessions
    ? []
    : [
        {
          level: 'warning',
          subject: `role ${role}`,
          column: null,
          message:
            'The role does not see when transactions of other roles started, so that runs wait for all of them.',
          sql: `grant pg_read_all_stats to ${role};`,
        },
      ];

/** Checks that the role may read a relation, and that it sees all rows in time. */
export function checkRelationRights(
  role: RelationRole,
  facts: RelationFacts,
  reader: SourceRole,
): SourceFinding[] {
  const { name, kind, row_security } = facts;
  const finding = (level: SourceFinding['level'], message: string, sql: string | null = null) => ({
    level,
    subject: name,
    column: null,
    message,
    sql,
  });
  const unreadable = sourceContract[role].columns
    .map((column) => findColumn(facts, column.name))
    .filter((column) => column?.readable === false);
  return [
    ...(unreadable.length === 0
      ? []
      : [
          finding(
            'error',
            `The role ${reader.role} may not read it.`,
            `grant select on ${name} to ${reader.role};`,
          ),
        ]),
    ...(row_security
      ? [finding('warning', `Policies of row security decide which rows ${reader.role} sees and exports.`)]
      : []),
    ...(kind === 'foreign table'
      ? [
          finding(
            'warning',
            'It is a foreign table: runs do not wait for the transactions of its server, so that late rows are found by comparisons only.',
          ),
        ]
      : []),
    ...(kind === 'materialized view'
      ? [
          finding(
            'warning',
            'It is a materialized view: rows that a refresh adds to ended intervals are found by comparisons only.',
          ),
        ]
      : []),
  ];
}

/** The finding for a relation in a schema that the role may not use. */
export function forbiddenSchema(relation: string, { role }: SourceRole): SourceFinding {
  const [name = ''] = /"(?:[^"]|"")+"$/.exec(relation) ?? [];
  const schema = relation.slice(0, -name.length - 1);
  return {
    level: 'error',
    subject: relation,
    column: null,
    message: `The role ${role} may not use the schema ${schema}.`,
    sql: `grant usage on schema ${schema} to ${role};\ngrant select on ${relation} to ${role};`,
  };
}
