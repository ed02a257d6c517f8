/** One figure of every repeat. Minimum and median say how noisy the machine was. */
export interface Figures {
  readonly minimum: number;
  readonly median: number;
  /** In the order of the repeats. */
  readonly all: readonly number[];
}

/** How long something took that moved all rows. Rates follow from the median; megabytes are those of binary COPY. */
export interface Throughput {
  readonly seconds: Figures;
  readonly rows_per_second: number;
  readonly megabytes_per_second: number;
  /** Of the client's processes, PostgreSQL and the S3 server not counted. */
  readonly cpu_seconds: Figures;
}

/** Something that could not be measured, and why. */
export interface Skipped {
  readonly skipped: string;
}

/** The ordered binary COPY thrown away: nothing that reads all rows in order can be faster. */
export interface FloorResult extends Throughput {
  /** Which client read it. */
  readonly client: 'psql' | 'pg';
}

/** The shell pipeline that writes the same rows as gzipped JSON lines into the bucket. */
export interface PipelineResult extends Throughput {
  /** Size of the object. */
  readonly bytes: number;
  readonly ratio_to_floor: number;
}

/** exportd, one format; `seconds` is the time from Running to the manifest, as the journal recorded them. */
export interface ExportResult extends Throughput {
  /** From the command to Completed: with the backfill's start, the wait for open transactions and the count. */
  readonly seconds_from_command: Figures;
  /** Rows by the manifest. */
  readonly rows: number;
  /** Size of the objects. */
  readonly bytes: number;
  /** Most memory that the worker ever had resident during the export; null where the system does not tell. */
  readonly peak_memory_bytes: number | null;
  /** The same memory before the export, the worker just started. */
  readonly idle_memory_bytes: number | null;
  /** Median over the repeats of exportd's time by that of the floor. */
  readonly ratio_to_floor: number;
  /** Median over the repeats of the pipeline's time by exportd's: 2 is twice as fast. Null without a pipeline. */
  readonly times_faster_than_pipeline: number | null;
  /** Bytes by those of the pipeline. */
  readonly size_to_pipeline: number | null;
}

/** What a bench found; times are seconds, sizes bytes. */
export interface BenchDocument {
  readonly started_at: string;
  /** Of the whole bench, data and clean-up included. */
  readonly seconds: number;
  readonly machine: {
    readonly cpus: number;
    readonly cpu_model: string;
    readonly memory_bytes: number;
    readonly platform: string;
    readonly node: string;
    readonly postgresql: string;
  };
  readonly events: number;
  /** Bytes of the events as binary COPY. */
  readonly copy_bytes: number;
  readonly repeat: number;
  /** Whether each worker had exported the interval once before. */
  readonly warm: boolean;
  readonly floor: FloorResult;
  readonly pipeline: PipelineResult | Skipped;
  readonly exports: readonly (
    ({ readonly format: string } & ExportResult) | ({ readonly format: string } & Skipped)
  )[];
}
