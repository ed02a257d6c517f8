import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Schema } from '../../dialect/schema.ts';
import { compileQuery } from '../../dialect/compile/compile_query.ts';
import { DialectError } from '../../dialect/dialect_error.ts';
import type { QueryProject } from '../../queries/query_kind.ts';
import { medianOf, rounded } from '../statistics.ts';
import { compileShapes, type CompileShape } from './compile_shapes.ts';
import type { CompileResult } from './result.ts';

/** Characters of the measured texts. The product accepts the first ones only. */
const lengths = [16_384, 65_536, 262_144, 1_048_576];
/** Of the dialect's limits only that on depth applies, so that the time of a long text is seen. */
const parse = { length: Infinity, nodes: Infinity, depth: 250, selects: Infinity, values: Infinity };

/** Measures how long texts of growing length take to compile, up to `maxLength` characters. */
export async function measureCompileTimes(
  schema: Schema,
  { team_id, timezone, week_start_day }: QueryProject,
  now: Date,
  { repeat, maxLength }: { readonly repeat: number; readonly maxLength: number },
): Promise<readonly CompileResult[]> {
  const project = {
    teamId: team_id,
    timezone,
    weekStartDay: week_start_day,
    now: now.toISOString(),
    schema,
  };
  const compile = (text: string): string | null => {
    try {
      compileQuery(text, project, { parse });
      return null;
    } catch (error) {
      if (error instanceof DialectError) return error.summary;
      throw error;
    }
  };
  const results: CompileResult[] = [];
  for (const shape of compileShapes) {
    let rejection: string | null = null;
    const times: { length: number; ms: number }[] = [];
    for (const length of lengths.filter((one) => one <= maxLength)) {
      const text = textOf(shape, length);
      const measured: number[] = [];
      for (let run = 0; run < repeat; run += 1) {
        // Timers that start after minutes in one turn of the event loop would end at once.
        await nextTurn();
        const startedAt = performance.now();
        rejection = compile(text);
        measured.push(performance.now() - startedAt);
      }
      times.push({ length: text.length, ms: rounded(medianOf(measured)) });
    }
    results.push({ name: shape.name, times, rejection });
  }
  return results;
}

/** A text of about this length. */
function textOf(shape: CompileShape, length: number): string {
  const sample = 500;
  return shape.text(Math.round((length * sample) / shape.text(sample).length));
}
