import type { Sql } from '../../sql.ts';
import { column, type RelationFields, type Relation } from '../relation.ts';
import type { Statement } from '../statement.ts';
import { TeamRelation } from '../team_relation.ts';
import { type FieldDefinitions, fieldOf, starFieldsOf } from './field_definitions.ts';

const fields: FieldDefinitions = {
  id: { column: 'id', kind: 'uuid' },
  created_at: { column: 'created_at', kind: 'datetime' },
  properties: { column: 'properties', kind: 'json' },
  team_id: { column: 'team_id', kind: 'integer', hidden: true },
  version: { column: 'version', kind: 'integer', hidden: true },
};

/** The newest version of each person of a project, without deleted persons. */
export class PersonsRelation implements Relation {
  readonly name: string | null;
  readonly #statement: Statement;
  readonly #relation: TeamRelation;

  /** @param sample the condition of SAMPLE */
  constructor(statement: Statement, name: string | null, sample: Sql | null = null) {
    this.name = name;
    this.#statement = statement;
    this.#relation = new TeamRelation(statement, statement.project.schema.persons, name ?? 'persons', {
      teamColumn: 'team_id',
      conditions: [sample],
      versioned: { key: 'id' },
    });
  }

  readonly field: Relation['field'] = (name) => {
    if (name === 'pdi' || name === 'is_identified')
      return {
        kind: 'unsupported',
        summary: `The field ${name} of persons is not supported.`,
        suggestion: 'Join person_distinct_ids ON person_id = id.',
      };
    return fieldOf(this.#relation, fields, name, this.#statement.project.schema.personProperties);
  };

  readonly names = (): readonly string[] => Object.keys(fields);
  readonly star = (): readonly string[] => starFieldsOf(fields);
  readonly from = (): Sql => this.#relation.from();

  get id(): Sql {
    return this.#relation.column('id');
  }
}

/** The nested row `person` of a row with a person id. Fields other than the id are read from persons. */
export function nestedPerson(id: Sql, persons: () => PersonsRelation): RelationFields {
  const names = () => starFieldsOf(fields);
  const person: RelationFields = {
    // A deleted person has only an id.
    field: (name) => {
      if (name === 'id') return column(id, { kind: 'uuid', nullable: true });
      const field = persons().field(name);
      return field?.kind === 'column' ? { ...field, type: { ...field.type, nullable: true } } : field;
    },
    names,
    star: names,
  };
  return person;
}
