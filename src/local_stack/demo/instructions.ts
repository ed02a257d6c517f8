import type { DataFolder } from '../data_folder.ts';
import { demoFilePath, type DemoFile } from './demo_file.ts';

/** What the demo's events say that was paid, beside what the table of charges says. */
export const revenue =
  'select c.currency, count() as charges, sum(c.amount) as charged, sum(e.properties.revenue) as tracked from stripe.charges as c join events as e on e.uuid = c.event_uuid group by c.currency order by charged desc';

/** What a person can do with the demo next. */
export function demoInstructions(folder: DataFolder, demo: DemoFile): string {
  const project = `${demo.base_url}/api/environments/${String(demo.project_id)}`;
  return `
  HTTP interface  ${demo.base_url}
  Temporal UI     ${demo.temporal_ui ?? '(of your own Temporal)'}
  S3              ${demo.s3_endpoint}, bucket ${demo.bucket}
  Keys and ids    ${demoFilePath(folder)}
  Logs            ${folder.inside('logs')}

Try, in another terminal:

  KEY=${demo.api_key}
  EXPORT=${project}/batch_exports/${demo.batch_export_id}
  curl -H "Authorization: Bearer $KEY" $EXPORT/
  curl -H "Authorization: Bearer $KEY" "$EXPORT/runs/?limit=5"
  curl -H "Authorization: Bearer $KEY" $EXPORT/logs/
  curl -H "Authorization: Bearer $KEY" -X POST $EXPORT/pause/
  curl -H "Authorization: Bearer $KEY" -X POST $EXPORT/unpause/
  curl -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" ${project}/query/ \\
    -d '{"query": {"kind": "DialectQuery", "query": "${revenue}"}}'

Ctrl-C stops everything; npm start goes on where it stopped.
`;
}
