import type { SourceRelation } from '../../schema.ts';
import { bind, sql, type Sql } from '../../sql.ts';
import { column, type Relation } from '../relation.ts';
import type { Statement } from '../statement.ts';
import { TeamRelation } from '../team_relation.ts';
import { type FieldDefinitions, fieldOf, starFieldsOf } from './field_definitions.ts';

const fields: FieldDefinitions = {
  index: { column: 'group_type_index', kind: 'integer' },
  key: { column: 'group_key', kind: 'string' },
  created_at: { column: 'created_at', kind: 'datetime' },
  updated_at: { column: 'updated_at', kind: 'datetime' },
  properties: { column: 'group_properties', kind: 'json' },
  team_id: { column: 'team_id', kind: 'integer', hidden: true },
};

/**
 * The groups of a project, of all five types or of one. The relation's key (team, type, key) guarantees one row
 * each.
 */
export class GroupsRelation implements Relation {
  readonly name: string | null;
  readonly #relation: TeamRelation;
  readonly #optional: boolean;

  /**
   * @param joinedType the index of the group type that is joined to rows, which may have no such group; null for all
   * types
   */
  constructor(
    statement: Statement,
    source: SourceRelation,
    name: string | null,
    joinedType: string | null = null,
  ) {
    this.name = name;
    this.#optional = joinedType !== null;
    this.#relation = new TeamRelation(statement, source, name ?? 'groups', {
      teamColumn: 'team_id',
      conditions: [joinedType === null ? null : sql`group_type_index = ${bind(joinedType, 'int4')}`],
    });
  }

  readonly field: Relation['field'] = (name) => {
    const field = fieldOf(this.#relation, fields, name);
    return this.#optional && field?.kind === 'column'
      ? column(field.sql, { ...field.type, nullable: true })
      : field;
  };

  readonly names = (): readonly string[] => Object.keys(fields);
  readonly star = (): readonly string[] => starFieldsOf(fields);
  readonly from = (): Sql => this.#relation.from();

  get key(): Sql {
    return this.#relation.column('group_key');
  }
}
