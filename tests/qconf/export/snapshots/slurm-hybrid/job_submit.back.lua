-- job_submit.lua while the former partitions come back. Written by qconf export.
-- Refuses lists that name a partition which ends: a job that starts in another of its list would end with it. All else
-- is for the job_submit.lua that was there before.

local ENDING = {["small"] = true, ["medium"] = true, ["large"] = true, ["pool"] = true, }
local PARTITION_UP = 3 -- takes jobs and starts them
local ACCESS_DENIED = 2002 -- what scontrol says of it; Slurm 22.05 gives users no other message there

local function ending(partitions, part_list)
   for name in string.gmatch(partitions or "", "[^,]+") do
      local part = part_list[name]
      if ENDING[name] and part and part.state_up ~= PARTITION_UP then
         return name
      end
   end
end

local function submit(job, part_list)
   local name = ending(job.partition, part_list)
   if name then
      slurm.log_user(string.format("partition %s takes no submissions; leave it out", name))
      return slurm.ERROR
   end
   return slurm.SUCCESS
end

local function modify(job, record, part_list, modify_uid)
   return modify_uid ~= 0 and ending(job.partition, part_list) and ACCESS_DENIED or slurm.SUCCESS
end

-- The site's own job_submit.lua lies beside this file as job_submit.former.lua, if it had one. It goes first: what it
-- refuses is refused, and what it changes is what this one sees.
local function of_the_site()
   local file = io.open("/etc/slurm/job_submit.former.lua")
   if file == nil then
      return
   end
   file:close()
   slurm_job_submit, slurm_job_modify = nil, nil
   dofile("/etc/slurm/job_submit.former.lua")
   return slurm_job_submit, slurm_job_modify
end

local first_submit, first_modify = of_the_site()

function slurm_job_submit(job, part_list, submit_uid)
   local found = first_submit and first_submit(job, part_list, submit_uid) or slurm.SUCCESS
   return found == slurm.SUCCESS and submit(job, part_list) or found
end

function slurm_job_modify(job, record, part_list, modify_uid)
   local found = first_modify and first_modify(job, record, part_list, modify_uid) or slurm.SUCCESS
   return found == slurm.SUCCESS and modify(job, record, part_list, modify_uid) or found
end

return slurm.SUCCESS
