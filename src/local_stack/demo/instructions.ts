import type { DataFolder } from '../data_folder.ts';
import { demoFilePath, type DemoFile } from './demo_file.ts';

/** Compares the revenue in the events with the charges in the warehouse table. */
export const revenueQuery =
  'select c.currency, count() as charges, sum(c.amount) as charged, sum(e.properties.revenue) as tracked from stripe.charges as c join events as e on e.uuid = c.event_uuid group by c.currency order by charged desc';

/** What to try next. */
export function demoInstructions(folder: DataFolder, demo: DemoFile): string {
  const project = `${demo.base_url}/api/environments/${String(demo.project_id)}`;
  return `
  Console         ${demo.base_url}, sign in with the key below
  HTTP API        ${demo.base_url}/api/docs
  Temporal UI     ${demo.temporal_ui ?? '(see your Temporal server)'}
  Metrics         ${demo.base_url}/metrics and ${demo.worker_url}/metrics
  S3              ${demo.s3_endpoint}, bucket ${demo.bucket}
  Keys and IDs    ${demoFilePath(folder)}
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
    -d '{"query": {"kind": "DialectQuery", "query": "${revenueQuery}"}}'

Press Ctrl-C to stop. npm start continues with the same data.
`;
}
