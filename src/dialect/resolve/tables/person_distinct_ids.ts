import { sql, type Sql } from '../../sql.ts';
import type { Relation } from '../relation.ts';
import type { Statement } from '../statement.ts';
import type { TeamRelation } from '../team_relation.ts';
import { type FieldDefinitions, fieldOf, starFieldsOf } from './field_definitions.ts';
import { LazyJoins } from './lazy_joins.ts';
import { personMappings } from './merged_persons.ts';
import { nestedPerson, PersonsRelation } from './persons.ts';

const fields: FieldDefinitions = {
  distinct_id: { column: 'distinct_id', kind: 'string' },
  person_id: { column: 'person_id', kind: 'uuid' },
  team_id: { column: 'team_id', kind: 'integer', hidden: true },
  version: { column: 'version', kind: 'integer', hidden: true },
};

/** The current person of each distinct id. */
export class PersonDistinctIdsRelation implements Relation {
  readonly name: string | null;
  readonly #statement: Statement;
  readonly #relation: TeamRelation;
  readonly #joins = new LazyJoins();

  /** @param sample the condition of SAMPLE */
  constructor(statement: Statement, name: string | null, sample: Sql | null = null) {
    this.name = name;
    this.#statement = statement;
    this.#relation = personMappings(statement, name ?? 'person_distinct_ids', sample);
  }

  readonly field: Relation['field'] = (name) => {
    if (name !== 'person') return fieldOf(this.#relation, fields, name);
    const id = this.#relation.column('person_id');
    const persons = (): PersonsRelation =>
      this.#joins.getOrJoin('person', () => {
        const relation = new PersonsRelation(this.#statement, 'person');
        return { relation, condition: sql`${relation.id} = ${id}` };
      });
    return { kind: 'nested', fields: nestedPerson(id, persons) };
  };

  readonly names = (): readonly string[] => [...Object.keys(fields), 'person'];
  readonly star = (): readonly string[] => starFieldsOf(fields);
  readonly from = (): Sql => this.#joins.joinTo(this.#relation.from());

  get distinctId(): Sql {
    return this.#relation.column('distinct_id');
  }
}
