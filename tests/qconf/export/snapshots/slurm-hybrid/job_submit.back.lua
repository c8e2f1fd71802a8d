-- job_submit.lua while the former partitions come back. Written by qconf export.
-- Refuses lists that name a partition which ends: a job that starts in another of its list would end with it. All else
-- is for the site's own job_submit.lua, which lies beside it then as job_submit.site.lua, if it had one.

local ENDING = {["small"] = true, ["medium"] = true, ["large"] = true, ["pool"] = true, }
local SITE = "/etc/slurm/job_submit.site.lua"
local PARTITION_UP = 3 -- takes jobs and starts them
local ACCESS_DENIED = 2002 -- what scontrol says of it; Slurm 22.05 gives users no other message there

local function of_the_site()
   local file = io.open(SITE)
   if file == nil then
      return
   end
   file:close()
   slurm_job_submit, slurm_job_modify = nil, nil
   dofile(SITE)
   return slurm_job_submit, slurm_job_modify
end

local submit, modify = of_the_site()

local function ending(partitions, part_list)
   for name in string.gmatch(partitions or "", "[^,]+") do
      local part = part_list[name]
      if ENDING[name] and part and part.state_up ~= PARTITION_UP then
         return name
      end
   end
end

function slurm_job_submit(job, part_list, submit_uid)
   local found = submit and submit(job, part_list, submit_uid) or slurm.SUCCESS
   local name = found == slurm.SUCCESS and ending(job.partition, part_list)
   if name then
      slurm.log_user(string.format("partition %s takes no submissions; leave it out", name))
      return slurm.ERROR
   end
   return found
end

function slurm_job_modify(job, record, part_list, modify_uid)
   local found = modify and modify(job, record, part_list, modify_uid) or slurm.SUCCESS
   if found == slurm.SUCCESS and modify_uid ~= 0 and ending(job.partition, part_list) then
      return ACCESS_DENIED
   end
   return found
end

return slurm.SUCCESS
