import type { Expression } from '../../dialect/ast.ts';
import { expressionOf, fieldOf } from '../../dialect/build.ts';
import { readExpression } from '../dialect_texts.ts';
import { QueryInvalid } from '../query_errors.ts';
import type { Breakdown } from './schema.ts';

const refused = (attr: string, message: string): QueryInvalid =>
  new QueryInvalid('not_supported', message, { attr });

/** Fields of events themselves. */
const metadata: ReadonlySet<string> = new Set([
  ...(['event', 'distinct_id', 'uuid', 'person_id', 'timestamp', 'created_at', 'elements_chain'] as const),
  ...(['$session_id', '$window_id', '$group_0', '$group_1', '$group_2', '$group_3', '$group_4'] as const),
]);

/** What an event is broken down by, as the source has it. @throws QueryInvalid */
export function brokenDownBy({ type, property, group_type_index, attr }: Breakdown): Expression {
  if (type === 'cohort')
    throw refused(
      attr,
      'Breakdowns by cohort are not supported: cohorts are not stored here. Break down by an expression (breakdown_type "hogql") that holds their condition.',
    );
  if (typeof property === 'object')
    throw refused(attr, 'A list of breakdowns is written in the member breakdowns.');
  const name = String(property);
  switch (type) {
    case 'event':
      return fieldOf('properties', name);
    case 'person':
      return fieldOf('person', 'properties', name);
    case 'session':
      return fieldOf('session', name);
    case 'group':
      return name === '$group_key'
        ? fieldOf(`$group_${group_type_index ?? 0}`)
        : fieldOf(`group_${group_type_index ?? 0}`, 'properties', name);
    case 'event_metadata':
      if (metadata.has(name)) return fieldOf(name);
      throw new QueryInvalid(
        'invalid_input',
        `Events have no field ${name}. There are: ${[...metadata].join(', ')}.`,
        { attr },
      );
    case 'hogql':
      return readExpression(name, attr);
    default:
      throw refused(attr, `Breakdowns of the type ${type} are not supported here.`);
  }
}

/** An URL, which is not empty, without what may be missing behind it: slashes, `?` and `#`. */
export const normalizedUrl = (text: Expression): Expression =>
  expressionOf("ifNull(nullIf(trimRight({text}, '/?#'), ''), '/')", { text });
